import type { Schemas } from "../api/client";
import { compareLines, type DiffLine, skipEqual } from "../model/diff";
import { linesOf } from "../model/lines";
import { useData } from "../ui/data";
import { readStream } from "../ui/output";
import { Card, Data, State, Time } from "../ui/parts";
import { Differences } from "../views/differences";

type Run = Schemas["DeploymentRun"];

const STREAMS = ["stdout", "stderr"] as const;
/** Differing lines that are shown at most. */
const MOST = 2000;

/** What differs between two runs of a deployment: their results, inputs, outputs, and the lines that they wrote. */
export function RunComparison({ deployment, run, other }: { deployment: string; run: Run; other: Run }) {
  const key = `comparison ${deployment} ${run.number} ${run.end_time} ${other.number}`;
  const loaded = useData(
    key,
    async (signal) => {
      const read = async (one: Run, stream: string) => linesOf(await (await readStream(deployment, one.config_id, stream, signal)).text());
      const texts = await Promise.all(STREAMS.flatMap((stream) => [read(other, stream), read(run, stream)]));
      return STREAMS.map((stream, index) => [stream, compareLines(texts[2 * index]!, texts[2 * index + 1]!)] as const);
    },
    0,
  );
  return (
    <Card title={`Run ${run.number} beside run ${other.number}`}>
      <div class="table-box" tabIndex={0} role="group" aria-label="Values that differ">
        <table class="comparison">
          <thead>
            <tr>
              <th scope="col">Differs</th>
              <th scope="col">Run {other.number}</th>
              <th scope="col">Run {run.number}</th>
            </tr>
          </thead>
          <tbody>
            <Row name="State" cells={[other, run].map((one) => <State of={one.status ?? one.state} />)} />
            <Row name="Queued" cells={[other, run].map((one) => <Time at={one.queued_time} />)} />
            {valuesOf(run, other).map(([name, before, after]) => (
              <Row key={name} name={name} cells={[before, after].map((text) => <span class="mono">{text}</span>)} />
            ))}
          </tbody>
        </table>
      </div>
      <Data of={loaded}>
        {(streams) => (
          <>
            {streams.map(([stream, lines]) => (
              <Lines key={stream} stream={stream} lines={lines} />
            ))}
          </>
        )}
      </Data>
    </Card>
  );
}

function Row({ name, cells }: { name: string; cells: preact.ComponentChildren[] }) {
  return (
    <tr>
      <th scope="row">{name}</th>
      {cells.map((cell, index) => (
        <td key={index}>{cell}</td>
      ))}
    </tr>
  );
}

function Lines({ stream, lines }: { stream: string; lines: readonly DiffLine[] }) {
  const title = stream === "stderr" ? "Standard error" : "Standard output";
  const isEqual = lines.every(({ kind }) => kind === "equal");
  if (isEqual) return <p class="quiet">{title}: {lines.length === 0 ? "both wrote nothing." : `equal, ${lines.length.toLocaleString("en")} lines.`}</p>;
  const shown = skipEqual(lines);
  return (
    <div class="comparison-stream">
      <p class="quiet">{title}</p>
      <Differences lines={shown.slice(0, MOST)} label={`Differences of ${title.toLowerCase()}`} />
      {shown.length > MOST && <p class="quiet">{(shown.length - MOST).toLocaleString("en")} more lines differ.</p>}
    </div>
  );
}

/** Returns the names of results, inputs, outputs and changes that differ, with both values. */
function valuesOf(run: Run, other: Run): [string, string, string][] {
  const all: [string, unknown, unknown][] = [
    ["Exit code", other.status_code, run.status_code],
    ["Action", other.action, run.action],
    ["By", other.requested_by, run.requested_by],
  ];
  for (const [kind, before, after] of [
    ["Input", other.input_values, run.input_values],
    ["Output", other.output_values, run.output_values],
  ] as const) {
    for (const name of new Set([...Object.keys(before), ...Object.keys(after)])) all.push([`${kind} ${name}`, before[name], after[name]]);
  }
  const items = (one: Run) => one.changes.map((change) => `${change.item}: ${change.outcome}`).join("\n");
  all.push(["Changes", items(other), items(run)]);
  const texts = all.map(([name, before, after]): [string, string, string] => [name, textOf(before), textOf(after)]);
  return texts.filter(([, before, after]) => before !== after);
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
