import { differencesOf, foldResults, foldRuns, KINDS, type Kind, type PlannedChange, type PlannedRun, type ServerResult } from "../model/plan";
import { foldNames } from "../model/ranges";
import { Card, Count, Empty } from "../ui/parts";
import { Differences, Items } from "./differences";
import { shortType } from "./graph";

/** Resources of a kind above which they are folded. */
const MOST_OPEN = 5;

export type Changes = Readonly<Partial<Record<Kind, readonly PlannedChange[]>>>;

/** What a plan changes: the counts first, then each resource with its differences, and the runs in their order. */
export function PlanView({ changes, runs }: { changes: Changes; runs: readonly PlannedRun[] }) {
  const shown = KINDS.filter(({ kind }) => (changes[kind] ?? []).length > 0);
  return (
    <>
      <ul class="plan-counts" aria-label="Changes">
        {KINDS.filter(({ kind }) => changes[kind]).map(({ kind, symbol, tone }) => {
          const count = changes[kind]!.length;
          return (
            <li key={kind} class={`tile ${count > 0 ? tone : "off"}`}>
              <Count of={count} symbol={symbol} label={kind} />
            </li>
          );
        })}
      </ul>
      {shown.every(({ kind }) => kind === "unchanged") && <Empty>Nothing would change.</Empty>}
      {shown
        .filter(({ kind }) => kind !== "unchanged")
        .map(({ kind, symbol, tone }) => (
          <Card key={kind} title={`${kind[0]!.toUpperCase()}${kind.slice(1)}`} aside={<span>{changes[kind]!.length}</span>}>
            <ul class="plan-list">
              {[...changes[kind]!]
                .sort((one, other) => one.resource_name.localeCompare(other.resource_name, "en", { numeric: true }))
                .map((change, index) => (
                  <li key={`${change.stack_name}/${change.resource_name}`}>
                    <Change change={change} symbol={symbol} tone={tone} kind={kind} isOpen={index < MOST_OPEN} />
                  </li>
                ))}
            </ul>
          </Card>
        ))}
      <Runs runs={runs} />
    </>
  );
}

function Change(props: { change: PlannedChange; symbol: string; tone: string; kind: Kind; isOpen: boolean }) {
  const { change, kind } = props;
  const differences = kind === "added" || kind === "deleted" ? [] : differencesOf(change);
  const head = (
    <>
      <b class={props.tone}>
        <span class="symbol" aria-hidden="true">
          {props.symbol}
        </span>{" "}
        {change.resource_name}
      </b>{" "}
      <span class="quiet">
        {shortType(change.resource_type)}
        {differences.length > 0 && `: ${differences.map(({ name }) => name).join(", ")}`}
        {differences.length === 0 && kind === "updated" && change.resource_status === "FAILED" && ": it failed before"}
      </span>
    </>
  );
  if (differences.length === 0) return head;
  return (
    <details open={props.isOpen}>
      <summary>{head}</summary>
      {differences.map(({ name, lines }) => (
        <div key={name} class="plan-difference">
          <p class="quiet">{name}</p>
          {lines.length > 0 ? <Differences lines={lines} label={`Differences of ${name}`} /> : <p>not known before the update</p>}
        </div>
      ))}
    </details>
  );
}

function Runs({ runs }: { runs: readonly PlannedRun[] }) {
  const folded = foldRuns(runs);
  return (
    <Card title="Runs on servers" aside={<span>{runs.length}</span>}>
      {folded.length === 0 ? (
        <Empty>No server runs anything.</Empty>
      ) : (
        <ol class="rows plan-runs">
          {folded.map((run) => (
            <li key={run.key}>
              <span class="row-text">{run.text}</span>
              <span class="quiet">
                {run.count > 1 ? `${run.count} servers: ` : ""}
                {run.servers}
              </span>
            </li>
          ))}
        </ol>
      )}
    </Card>
  );
}

/** What the servers answered to the question what would change on them; equal answers are one. */
export function ServerResults({ of: previews }: { of: readonly { name: string; reason: string | null; results: readonly ServerResult[] }[] }) {
  if (previews.length === 0) return <Empty>The plan has no run on a server that exists.</Empty>;
  return (
    <ul class="plan-list">
      {previews.map(({ name, reason, results }) => (
        <li key={name}>
          <b>{name}</b>
          {reason !== null && <p class="quiet">unknown: {reason}</p>}
          {foldResults(results).map(({ servers, summary, changes }) => (
            <details key={servers[0]} open={changes.length > 0 && changes.length <= MOST_OPEN}>
              <summary>
                {servers.length === 1 ? servers[0] : `${servers.length} servers: ${foldNames(servers)}`}{" "}
                <span class="quiet">{summary}</span>
              </summary>
              <div class="plan-difference">
                <Items of={changes} />
              </div>
            </details>
          ))}
        </li>
      ))}
    </ul>
  );
}
