import { useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import { compareLines, type DiffLine, skipEqual } from "../model/diff";
import { linesOf } from "../model/lines";
import { foldNames } from "../model/ranges";
import { selectorOf } from "../model/selector";
import { Copy } from "../ui/copy";
import { State } from "../ui/parts";
import { Link } from "../ui/router";
import { Differences } from "./differences";

type Group = Schemas["OutputGroup"];

/** Lines of a group that are shown at first. */
const FIRST = 12;

/** Equal output of many servers, once. Of the groups after the first, the lines are marked that differ from the first. */
export function Groups({ groups, reference }: { groups: readonly Group[]; reference: Group | undefined }) {
  return (
    <ol class="groups">
      {groups.map((group) => (
        <GroupItem key={`${group.exit_code} ${group.digest} ${group.status_reason}`} group={group} reference={reference} />
      ))}
    </ol>
  );
}

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
        <p class="empty">{group.digest === null ? group.status_reason || "The runs have no result." : "The runs wrote nothing."}</p>
      ) : (
        <Differences lines={isWhole ? compared : shortened} label={`Output of ${count} servers`} isMarked={isCompared} />
      )}
      {isShort && (
        <button class="link" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
          {isWhole ? "Show less" : `Show all ${compared.length} lines`}
        </button>
      )}
      {group.is_cut && <p class="quiet">The rest of the output is shown by the run itself.</p>}
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
