import type { Schemas } from "../api/client";
import { parseTime } from "../model/time";
import { ActionLink } from "../ui/actions";
import { useGet } from "../ui/data";
import { Pages, StateFilter, TextFilter } from "../ui/filters";
import { Data, Duration, Head, State, Time } from "../ui/parts";
import { Link, readQuery, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { Progress } from "../views/progress";

type Trigger = Schemas["SoftwareTrigger"];
type Status = Trigger["status"];

/** Triggers of a page. */
const PAGE = 100;
const STATES: readonly Status[] = ["IN_PROGRESS", "FAILED", "CANCELLED", "COMPLETE"];

// The server orders the list: an order of one page would hide what the other pages have.
const COLUMNS: Column<Trigger>[] = [
  { title: "Name", cell: (trigger) => <Link to={["triggers", trigger.id]}>{trigger.name}</Link> },
  { title: "State", cell: (trigger) => <State of={trigger.status} /> },
  { title: "Progress", cell: (trigger) => <Progress of={trigger} />, isWide: true },
  { title: "Servers", cell: (trigger) => trigger.total.toLocaleString("en"), isWide: true, isNumber: true },
  { title: "Failed", cell: (trigger) => trigger.failed.toLocaleString("en"), isWide: true, isNumber: true },
  { title: "Changed", cell: (trigger) => trigger.changed.toLocaleString("en"), isWide: true, isNumber: true },
  { title: "By", cell: (trigger) => trigger.requested_by ?? "", isWide: true },
  { title: "Duration", cell: (trigger) => <Duration from={trigger.creation_time} to={trigger.end_time} />, isWide: true },
  { title: "Began", cell: (trigger) => <Time at={trigger.creation_time} /> },
];

/** The triggers of the project, the newest first, page by page. All filters are the server's. */
export function TriggersPage() {
  const { status, ...filters } = readQuery("status", "contains", "requested_by", "ended_since", "marker");
  const { ended_since, marker } = filters;
  const page = { ...filters, status: status as Status | "", limit: PAGE + 1 };
  const triggers = useGet("/v1/{project}/software_triggers", {}, page, marker ? [] : ["triggers"]);
  const isFiltered = status !== "" || Object.values(filters).some(Boolean);
  return (
    <>
      <Head title="Triggers">
        <ActionLink to={["run"]} class="primary">
          Run a command
        </ActionLink>
      </Head>
      <p class="lead">Runs of a command, a config or an action on one or many servers.</p>
      <div class="filters">
        <TextFilter name="contains" label="Name" hint="part of a name" />
        <TextFilter name="requested_by" label="By" hint="name of a user" />
      </div>
      <div class="filters">
        <StateFilter counts={new Map(STATES.map((state) => [state, null]))} />
        {ended_since && (
          <button class="pill" aria-pressed="true" onClick={() => setQuery({ ended_since: "", marker: "" })}>
            ended since {new Date(parseTime(ended_since)).toLocaleString()} ✕
          </button>
        )}
      </div>
      <Data of={triggers}>
        {({ software_triggers: all }) => (
          <>
            <Table
              label="Triggers"
              rows={all.slice(0, PAGE)}
              columns={COLUMNS}
              keyOf={(trigger) => trigger.id}
              empty={
                isFiltered ? (
                  "No trigger matches these filters."
                ) : (
                  <>
                    There are no triggers yet. “Run a command” and <code>stoker run 'web*' -- uptime</code> run a command on servers.
                  </>
                )
              }
            />
            <Pages next={all.length > PAGE ? all[PAGE - 1]!.id : ""} />
          </>
        )}
      </Data>
    </>
  );
}
