import { groupBy } from "../model/groups";
import { foldNames } from "../model/ranges";
import { judge, splitNames, type Verdict } from "../model/targets";
import { type Loaded, useData } from "../ui/data";
import { Empty, Problem } from "../ui/parts";
import { Link, query } from "../ui/router";
import { loadServers, type Server } from "../ui/servers";

export interface Judged {
  server: Server;
  verdict: Verdict;
}

/** Reads the servers that the URL chooses, and judges whether a run of a config of this group begins on them. */
export function useTargets(group: string, requireWindow: boolean): Loaded<Judged[]> {
  const selector = query.value.get("selector") ?? "";
  const names = query.value.get("servers") ?? "";
  return useData(
    JSON.stringify([selector, names, group, requireWindow]),
    async (signal) => {
      if (!selector && !names) return [];
      const name = splitNames(names);
      const filter = { ...(selector ? { selector } : {}), ...(name.length > 0 ? { name } : {}) };
      const servers = await loadServers(signal, filter, group);
      return servers.map((server) => ({ server, verdict: judge(server, requireWindow) }));
    },
    10,
  );
}

/** What happens to one server, and to several. */
const HEADINGS: Record<Verdict["when"], [string, string]> = {
  now: ["begins at once", "begin at once"],
  waits: ["waits", "wait"],
  out: ["is left out", "are left out"],
};

/** Who is chosen, who waits and who is left out, with the reasons. */
export function TargetPreview({ targets }: { targets: Loaded<Judged[]> }) {
  if (targets.error && !targets.data) return <Problem error={targets.error} />;
  const judged = targets.data;
  if (judged === null) return <p class="quiet" role="status">Looking …</p>;
  if (judged.length === 0) {
    const isChosen = query.value.get("selector") || query.value.get("servers");
    return (
      <Empty>
        {isChosen ? "No server matches." : "Name servers, or write a selector."} <Link to={["servers"]}>See all servers</Link>
      </Empty>
    );
  }
  const missing = missingOf(judged.map(({ server }) => server));
  return (
    <div class="targets" role="status" aria-label="Chosen servers">
      {(["now", "waits", "out"] as const).map((when) => (
        <Group key={when} when={when} judged={judged.filter(({ verdict }) => verdict.when === when)} />
      ))}
      {missing.length > 0 && <p class="bad">No server is named {missing.join(", ")}.</p>}
    </div>
  );
}

/** Returns the names in the URL, without patterns, that no server has. */
function missingOf(servers: readonly Server[]): string[] {
  const present = new Set(servers.flatMap((server) => [server.name, server.id]));
  // With a selector, a server may be missing because it does not match.
  if (query.value.get("selector")) return [];
  return splitNames(query.value.get("servers") ?? "").filter((name) => !/[*?[]/.test(name) && !present.has(name));
}

function Group({ when, judged }: { when: Verdict["when"]; judged: readonly Judged[] }) {
  if (judged.length === 0) return null;
  const reasons = groupBy(judged, ({ verdict }) => verdict.reason);
  return (
    <section class={`verdict ${when}`}>
      <h3>
        <b>{judged.length.toLocaleString("en")}</b> {HEADINGS[when][judged.length === 1 ? 0 : 1]}
      </h3>
      <ul>
        {[...reasons].map(([reason, group]) => (
          <li key={reason}>
            <span class="names">{foldNames(group.map(({ server }) => server.name))}</span>
            {reason && <span class="quiet"> {reason}</span>}
          </li>
        ))}
      </ul>
    </section>
  );
}
