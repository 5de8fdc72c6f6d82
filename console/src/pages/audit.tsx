import { get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { download } from "../ui/copy";
import { useData } from "../ui/data";
import { Pages, Pills, TextFilter } from "../ui/filters";
import { useTask } from "../ui/form";
import { Data, Head, Problem, State, Time } from "../ui/parts";
import { Link, query, readQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";

type Entry = Schemas["AuditEntry"];

/** Entries of a page, and of a request of the download. */
const PAGE = 100;
const MOST = 1000;
/** Entries of a download at most. */
const LONGEST = 100_000;
const FILTERS = ["actor", "action", "object", "outcome", "since", "until"] as const;

const OUTCOMES = [
  { value: "", text: "all" },
  { value: "REFUSED", text: "refused" },
];
const SITE = { value: "1", text: "users, projects and log-ins of the site" };

async function load(marker: string, limit: number, signal?: AbortSignal): Promise<Entry[]> {
  const { since, until, outcome, ...filters } = readQuery(...FILTERS);
  const times = { since: momentOf(since), until: momentOf(until) };
  const parameters = { ...filters, ...times, outcome: outcome as Entry["outcome"] | "", limit, marker: marker && Number(marker) };
  const isSite = query.value.get("site") === "1" && session.is_admin;
  return (await get(isSite ? "/v1/{project}/audit/site" : "/v1/{project}/audit", {}, parameters, signal)).audit;
}

/** Returns a time of the API from what somebody has typed in the browser's zone; the text itself if it is no time. */
function momentOf(text: string): string {
  const time = Date.parse(text.length === 10 ? `${text}T00:00` : text);
  return Number.isNaN(time) ? text : new Date(time).toISOString();
}

const COLUMNS: Column<Entry>[] = [
  { title: "Time", cell: (entry) => <Time at={entry.time} /> },
  { title: "User", cell: (entry) => entry.actor ?? "" },
  { title: "Action", cell: (entry) => <span class="nowrap">{entry.action}</span> },
  { title: "Outcome", cell: (entry) => <State of={entry.outcome} tone={entry.outcome === "REFUSED" ? "bad" : "good"} /> },
  { title: "Object", cell: (entry) => <Objects of={entry} /> },
  { title: "Reason", cell: (entry) => <span class="breaks">{entry.reason}</span>, isWide: true },
];

function Objects({ of: entry }: { of: Entry }) {
  const stack = [entry.stack_name, entry.resource_name].filter(Boolean).join("/");
  return (
    <>
      {entry.server_name && (entry.server_id ? <Link to={["servers", entry.server_id]}>{entry.server_name}</Link> : entry.server_name)}
      {entry.server_name && (stack || entry.config_name) && ", "}
      {stack || (entry.deployment_id ? <Link to={["runs", entry.deployment_id]}>{entry.config_name ?? "deployment"}</Link> : entry.config_name)}
    </>
  );
}

/** What users did, what ran on servers, and what was refused. */
export function AuditPage() {
  const marker = query.value.get("marker") ?? "";
  const key = JSON.stringify(readQuery(...FILTERS, "site", "marker"));
  const loaded = useData(key, (signal) => load(marker, PAGE, signal), marker ? 0 : 10);
  const { error, run } = useTask();
  const save = async () => {
    const entries: Entry[] = [];
    for (;;) {
      const last = entries[entries.length - 1];
      const page = await load(last ? `${last.id}` : "", MOST);
      entries.push(...page);
      if (page.length < MOST || entries.length >= LONGEST) break;
    }
    download("audit.json", new Blob([JSON.stringify(entries, null, 1)], { type: "application/json" }));
  };
  return (
    <>
      <Head title="Audit">
        <button class="view" onClick={() => void run(save)}>
          Download
        </button>
      </Head>
      {error && <Problem error={error} />}
      <div class="filters">
        <TextFilter name="actor" label="User" hint="ann" />
        <TextFilter name="action" label="Action begins with" hint="run" />
        <TextFilter name="object" label="Server, stack, config …" hint="web1" />
        <TextFilter name="since" label="Since" hint="2031-05-06 02:30" />
        <TextFilter name="until" label="Until" hint="2031-05-07" />
      </div>
      <div class="filters">
        <Pills name="outcome" label="Filter by outcome" clears={["marker"]} of={OUTCOMES} />
        {session.is_admin && <Pills name="site" label="Entries" clears={["marker"]} of={[SITE]} />}
      </div>
      <Data of={loaded}>
        {(entries) => (
          <>
            <Table label="Audit" rows={entries} columns={COLUMNS} keyOf={(entry) => `${entry.id}`} empty="No entry matches these filters." />
            <Pages next={entries.length === PAGE ? `${entries[PAGE - 1]!.id}` : ""} />
          </>
        )}
      </Data>
    </>
  );
}
