import { useState } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { groupBy } from "../model/groups";
import { foldNames } from "../model/ranges";
import { judge, parseCanary, splitNames, type Verdict } from "../model/targets";
import { type Loaded, useData } from "../ui/data";
import { Pills } from "../ui/filters";
import { CheckField, Form, TextField, textOf } from "../ui/form";
import { Card, Empty, Head, Problem } from "../ui/parts";
import { Link, navigate, query, readQuery, setQuery } from "../ui/router";
import { SelectorField } from "../ui/selector";
import { loadServers, type Server } from "../ui/servers";
import { type Content, ContentFields, KINDS, toContent, useContent } from "./run_content";

/** Runs a command, a config or an entry of the catalog on chosen servers, after a preview of them. */
export function RunCommandPage(_: { names: string[] }) {
  const what = query.value.get("what") ?? "";
  const content = useContent(what);
  const [requiresWindow, setRequiresWindow] = useState(false);
  const targets = useTargets(content.group, requiresWindow);
  const chosen = targets.data?.filter(({ verdict }) => verdict.when !== "out").map(({ server }) => server.id) ?? [];
  const start = async (values: FormData) => {
    navigate(["triggers", await createTrigger(toContent(what, content, values), values, chosen)]);
  };
  return (
    <>
      <Head title={KINDS[what]?.title ?? "Run a command"} />
      <Pills name="what" label="What to run" clears={["config", "entry"]} of={Object.entries(KINDS).map(([value, { title }]) => ({ value, text: title }))} />
      <Form class="run-form" label={labelOf(chosen.length)} isDisabled={chosen.length === 0} submit={start}>
        <div class="columns">
          <Card title="What">
            <ContentFields what={what} content={content} />
          </Card>
          <Card title="Where">
            <Where />
            <TargetPreview targets={targets} />
          </Card>
          <Card title="How">
            <RolloutFields onWindow={setRequiresWindow} hasTimeout={what !== "upgrade"} />
          </Card>
        </div>
      </Form>
    </>
  );
}

function labelOf(count: number): string {
  return count === 1 ? "Run on 1 server" : `Run on ${count.toLocaleString("en")} servers`;
}

function Where() {
  const names = query.value.get("servers") ?? "";
  return (
    <>
      <label class="field">
        <span>Servers</span>
        <textarea
          class="text-filter"
          rows={2}
          placeholder="web1 web2 db*"
          value={names}
          onChange={(event) => setQuery({ servers: splitNames(event.currentTarget.value).length > 0 ? event.currentTarget.value.trim() : "" })}
        />
        <span class="quiet">Names or patterns, separated by spaces. With a selector, too, a server must match both.</span>
      </label>
      <SelectorField value={query.value.get("selector") ?? ""} onChange={(selector) => setQuery({ selector })} />
    </>
  );
}

function RolloutFields({ onWindow, hasTimeout }: { onWindow: (isRequired: boolean) => void; hasTimeout: boolean }) {
  return (
    <>
      <TextField name="canary" label="Canary" placeholder="1 or 10%" hint="Run on this many servers first, and on the others after these have succeeded." />
      <TextField name="max_concurrent" label="At a time" placeholder="all" hint="Maximum number of servers at the same time." />
      <TextField name="max_fail_percentage" label="Failure limit (%)" placeholder="100" hint="Start on no more servers when a larger share has failed." />
      {hasTimeout && <TextField name="timeout" label="Timeout (seconds)" placeholder="none" hint="Kill a run that takes longer." />}
      <TextField name="name" label="Name" placeholder="run" hint="The name of the trigger in lists." />
      <CheckField name="require_window" label="Only in each server’s maintenance window" onChange={onWindow} />
    </>
  );
}

/** Starts a trigger, and returns its id. A config that was made for it is deleted if it does not start. */
async function createTrigger(content: Content, values: FormData, servers: string[]): Promise<string> {
  const canary = parseCanary(textOf(values, "canary") ?? "");
  const limits = {
    ...(canary === null ? {} : { canary }),
    max_concurrent: numberOf(values, "max_concurrent", "At a time"),
    max_fail_percentage: numberOf(values, "max_fail_percentage", "The failure limit"),
    timeout: numberOf(values, "timeout", "The timeout"),
    ...(values.get("require_window") === "on" ? { require_window: true } : {}),
  };
  const name = textOf(values, "name") ?? content.name;
  const { id, isNew } = await findConfig(content, name);
  const body = { config_id: id, servers, name, input_values: content.values, action: content.action, ...limits };
  try {
    const answer = (await change("POST", "/v1/{project}/software_triggers", {}, body)) as { software_trigger: Schemas["SoftwareTrigger"] };
    return answer.software_trigger.id;
  } catch (problem) {
    if (isNew) await change("DELETE", "/v1/{project}/software_configs/{config_id}", { config_id: id }).catch(() => undefined);
    throw problem;
  }
}

/** Returns the config to run: an existing one, the present one of the upgrades, or a new one. */
async function findConfig(content: Content, name: string): Promise<{ id: string; isNew: boolean }> {
  if (content.config_id) return { id: content.config_id, isNew: false };
  if (content.body.group === "agent") {
    const { software_configs: all } = await get("/v1/{project}/software_configs", {}, { derived: false });
    const present = all.find((config) => config.group === "agent" && config.name === content.name);
    if (present) return { id: present.id, isNew: false };
  }
  const body = { name, ...content.body };
  const answer = (await change("POST", "/v1/{project}/software_configs", {}, body)) as { software_config: { id: string } };
  return { id: answer.software_config.id, isNew: true };
}

function numberOf(values: FormData, name: string, label: string): number | undefined {
  const text = textOf(values, name);
  if (text !== undefined && !/^\d+$/.test(text)) throw new Error(`${label} is a number, not “${text}”.`);
  return text === undefined ? undefined : Number(text);
}

interface Judged {
  server: Server;
  verdict: Verdict;
}

/** Reads the servers that the URL chooses, and judges whether a run of a config of this group begins on them. */
function useTargets(group: string, requireWindow: boolean): Loaded<Judged[]> {
  const { selector, servers: names } = readQuery("selector", "servers");
  return useData(
    JSON.stringify([selector, names, group, requireWindow]),
    async (signal) => {
      if (!selector && !names) return [];
      const servers = await loadServers(signal, { selector, name: splitNames(names) }, group);
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
function TargetPreview({ targets }: { targets: Loaded<Judged[]> }) {
  if (targets.error && !targets.data) return <Problem error={targets.error} />;
  const judged = targets.data;
  if (judged === null) return <p class="quiet" role="status">Loading …</p>;
  if (judged.length === 0) {
    const isChosen = query.value.get("selector") || query.value.get("servers");
    return (
      <Empty>
        {isChosen ? "No server matches." : "Enter names of servers, or a selector."} <Link to={["servers"]}>See all servers</Link>
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
