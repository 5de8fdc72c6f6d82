import { get, type Schemas } from "../api/client";
import { useData } from "../ui/data";
import { countBy, StateFilter } from "../ui/filters";
import { Data, Duration, Empty, Head, State, Time } from "../ui/parts";
import { Link, query } from "../ui/router";
import { type Column, Table } from "../ui/table";

type Trigger = Schemas["SoftwareTrigger"];

/** Triggers of the list, the newest ones. */
const MOST = 200;

const COLUMNS: Column<Trigger>[] = [
  { title: "Name", cell: (trigger) => <Link to={["triggers", trigger.id]}>{trigger.name}</Link>, sort: (trigger) => trigger.name },
  { title: "State", cell: (trigger) => <State of={trigger.status} />, sort: (trigger) => trigger.status },
  { title: "Servers", cell: (trigger) => <span class="number">{trigger.total}</span>, sort: (trigger) => trigger.total },
  { title: "Failed", cell: (trigger) => <span class="number">{trigger.failed}</span>, sort: (trigger) => trigger.failed },
  { title: "Changed", cell: (trigger) => <span class="number">{trigger.changed}</span>, sort: (trigger) => trigger.changed, isWide: true },
  { title: "By", cell: (trigger) => trigger.requested_by ?? "", sort: (trigger) => trigger.requested_by ?? "", isWide: true },
  {
    title: "Duration",
    cell: (trigger) => <Duration from={trigger.creation_time} to={trigger.end_time} />,
    isWide: true,
  },
  { title: "Began", cell: (trigger) => <Time at={trigger.creation_time} />, sort: (trigger) => trigger.creation_time },
];

/** The triggers of the project, the newest first. */
export function TriggersPage() {
  const status = query.value.get("status") ?? "";
  const triggers = useData("triggers", async (signal) => {
    return (await get("/v1/{project}/software_triggers", {}, { limit: MOST }, signal)).software_triggers;
  });
  return (
    <>
      <Head title="Triggers" />
      <Data of={triggers}>
        {(all) => (
          <>
            <StateFilter counts={countBy(all, (trigger) => trigger.status)} />
            <Table
              label="Triggers"
              rows={status ? all.filter((trigger) => trigger.status === status) : all}
              columns={COLUMNS}
              keyOf={(trigger) => trigger.id}
              empty={
                <Empty>
                  {all.length > 0 ? (
                    "No trigger is in this state."
                  ) : (
                    <>
                      Nothing was triggered yet. <code>stoker run 'web*' -- uptime</code> runs a command on servers.
                    </>
                  )}
                </Empty>
              }
            />
            {all.length === MOST && <p class="quiet">The {MOST} newest triggers. `stoker trigger list` shows all.</p>}
          </>
        )}
      </Data>
    </>
  );
}
