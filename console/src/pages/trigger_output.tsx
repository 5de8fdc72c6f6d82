import { useEffect, useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { compareLines, type DiffLine, skipEqual } from "../model/diff";
import { linesOf } from "../model/lines";
import { foldNames } from "../model/ranges";
import { selectorOf } from "../model/selector";
import { Copy } from "../ui/copy";
import { useGet } from "../ui/data";
import { Card, Data, Empty, State } from "../ui/parts";
import { Link } from "../ui/router";
import { Differences } from "../views/differences";
import { endedOf } from "../views/progress";

type Trigger = Schemas["SoftwareTrigger"];
type Group = Schemas["OutputGroup"];

/** The states whose runs have output. */
const ENDED = ["COMPLETE", "FAILED", "CANCELLED"];
/** Lines of a group that are shown at first. */
const FIRST = 12;

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
            {wanted > 0 ? "Refresh" : `Show the output of ${ended.toLocaleString("en")} ended runs`}
          </button>
        )
      }
    >
      {isRunning && wanted === 0 ? (
        <Empty>When all runs have ended, servers with equal output are shown here together.</Empty>
      ) : (
        <Shown id={trigger.id} status={status} name={name} round={isRunning ? wanted : -1} />
      )}
    </Card>
  );
}

function Shown({ id, status, name, round }: { id: string; status: string; name: string; round: number }) {
  const filter = { status: status as "FAILED" | "" };
  const loaded = useGet("/v1/{project}/software_triggers/{trigger_id}/output_groups", { trigger_id: id }, filter, 0, round);
  return (
    <Data of={loaded}>
      {({ output_groups: all, total }) => {
        const selected = all
          .map((group) => ({ ...group, servers: group.servers.filter((server) => server.toLowerCase().includes(name)) }))
          .filter((group) => group.servers.length > 0);
        if (selected.length === 0) return <Empty>No ended run matches these filters.</Empty>;
        return (
          <>
            <ol class="groups">
              {selected.map((group) => (
                <GroupItem key={`${group.exit_code} ${group.digest} ${group.status_reason}`} group={group} reference={all[0]} />
              ))}
            </ol>
            {total > all.length && <p class="quiet">{(total - all.length).toLocaleString("en")} smaller groups are not shown.</p>}
          </>
        );
      }}
    </Data>
  );
}

/** Equal output of several servers. The lines are marked that differ from those of the reference, the largest group. */
function GroupItem({ group, reference }: { group: Group; reference: Group | undefined }) {
  const [isWhole, setWhole] = useState(false);
  const lines = outputOf(group);
  const isCompared = reference !== undefined && reference.digest !== group.digest && reference.digest !== null && group.digest !== null;
  const compared: DiffLine[] = isCompared
    ? compareLines(outputOf(reference), lines)
    : lines.map((text) => ({ kind: "equal", text }));
  const shortened = isCompared ? skipEqual(compared) : compared.slice(0, FIRST);
  const isShort = shortened.length < compared.length;
  const count = group.servers.length;
  return (
    <li class="group">
      <div class="group-head">
        <h3>
          {count.toLocaleString("en")} {count === 1 ? "server" : "servers"}
        </h3>
        <Outcome group={group} />
        <span class="mono group-names">{foldNames(group.servers)}</span>
        <span class="group-tools">
          <Copy label="Copy names" text={() => foldNames(group.servers).replaceAll(", ", ",")} />
          <Copy label="Copy as selector" text={() => selectorOf(group.servers)} />
          {group.deployment_id && <Link to={["runs", group.deployment_id]}>Open one run</Link>}
        </span>
      </div>
      {lines.length === 0 ? (
        <p class="empty">{group.digest === null ? group.status_reason || "The runs have no result." : "The runs wrote no output."}</p>
      ) : (
        <Differences lines={isWhole ? compared : shortened} label={`Output of ${count} servers`} isMarked={isCompared} />
      )}
      {isShort && (
        <button class="link" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show less" : `Show all ${compared.length} lines`}
        </button>
      )}
      {group.is_cut && <p class="quiet">Open a run to see the rest of its output.</p>}
    </li>
  );
}

function Outcome({ group }: { group: Group }) {
  if (group.exit_code === null) return <State of="no result" tone="off" />;
  return <State of={`exit code ${group.exit_code}`} tone={group.exit_code === "0" ? "good" : "bad"} />;
}

function outputOf(group: Group): string[] {
  return [group.stdout, group.stderr].flatMap(linesOf);
}
