import { useEffect, useState } from "preact/hooks";
import { get, type Schemas } from "../api/client";
import { useData } from "../ui/data";
import { Card, Data, Empty } from "../ui/parts";
import { Groups } from "../views/groups";
import { endedOf } from "../views/progress";

type Trigger = Schemas["SoftwareTrigger"];

/** The states whose runs have output. */
const ENDED = ["COMPLETE", "FAILED", "CANCELLED"];

/**
 * The output of a trigger's runs, once for all servers with equal output, of the servers that the filters select.
 *
 * It is read when all runs have ended, and before that only on request: many people look at a running trigger.
 */
export function OutputGroups({ trigger, status, name }: { trigger: Trigger; status: string; name: string }) {
  const [wanted, setWanted] = useState(0);
  const isRunning = trigger.status === "IN_PROGRESS";
  const ended = endedOf(trigger);
  useEffect(() => setWanted(0), [status]);
  if (ended === 0 || (status !== "" && !ENDED.includes(status))) return null;
  return (
    <Card
      title="Equal output"
      aside={
        isRunning && (
          <button class="link" onClick={() => setWanted(ended)}>
            {wanted > 0 ? "Read again" : `Read that of ${ended.toLocaleString("en")} ended runs`}
          </button>
        )
      }
    >
      {isRunning && wanted === 0 ? (
        <Empty>Servers with equal output stand here once, when all runs have ended.</Empty>
      ) : (
        <Shown id={trigger.id} status={status} name={name} round={isRunning ? wanted : -1} />
      )}
    </Card>
  );
}

function Shown({ id, status, name, round }: { id: string; status: string; name: string; round: number }) {
  const loaded = useData(
    `groups ${id} ${status} ${round}`,
    (signal) => get("/v1/{project}/software_triggers/{trigger_id}/output_groups", { trigger_id: id }, status ? { status: status as "FAILED" } : {}, signal),
    0,
  );
  return (
    <Data of={loaded}>
      {({ output_groups: all, total }) => {
        const selected = all
          .map((group) => ({ ...group, servers: group.servers.filter((server) => server.toLowerCase().includes(name)) }))
          .filter((group) => group.servers.length > 0);
        if (selected.length === 0) return <Empty>No ended run matches these filters.</Empty>;
        return (
          <>
            <Groups groups={selected} reference={all[0]} />
            {total > all.length && <p class="quiet">{(total - all.length).toLocaleString("en")} smaller groups are not shown.</p>}
          </>
        );
      }}
    </Data>
  );
}
