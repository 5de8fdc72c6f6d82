import type { ComponentChildren } from "preact";
import type { Schemas } from "../api/client";
import { compareLines, type DiffLine, skipEqual } from "../model/diff";
import { linesOf } from "../model/lines";
import { useData } from "../ui/data";
import { readStream } from "../ui/output";
import { Card, Data, State, Time } from "../ui/parts";
import { type Column, Table } from "../ui/table";
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
  const rows = valuesOf(run, other);
  const columns: Column<Difference>[] = [
    { title: "Differs", cell: (row) => <span class="breaks">{row.name}</span> },
    ...[other, run].map((one) => ({ title: `Run ${one.number}`, cell: (row: Difference) => row.cellOf(one) })),
  ];
  return (
    <Card title={`Run ${run.number} beside run ${other.number}`}>
      <Table label="Values that differ" rows={rows} columns={columns} keyOf={(row) => row.name} empty={null} />
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

function Lines({ stream, lines }: { stream: string; lines: readonly DiffLine[] }) {
  const title = stream === "stderr" ? "Standard error" : "Standard output";
  const isEqual = lines.every(({ kind }) => kind === "equal");
  if (isEqual) return <p class="quiet">{title}: {lines.length === 0 ? "both runs wrote none." : `equal, ${lines.length.toLocaleString("en")} lines.`}</p>;
  const shown = skipEqual(lines);
  return (
    <div class="comparison-stream">
      <p class="quiet">{title}</p>
      <Differences lines={shown.slice(0, MOST)} label={`Differences of ${title.toLowerCase()}`} />
      {shown.length > MOST && <p class="quiet">{(shown.length - MOST).toLocaleString("en")} more lines differ.</p>}
    </div>
  );
}

/** A value that differs between two runs. */
interface Difference {
  name: string;
  cellOf: (run: Run) => ComponentChildren;
}

/** Returns state and time, and the results, inputs, outputs and changes that differ. */
function valuesOf(run: Run, other: Run): Difference[] {
  const namesOf = (kind: "input_values" | "output_values") => [...new Set([other, run].flatMap((one) => Object.keys(one[kind])))];
  const values: [string, (run: Run) => unknown][] = [
    ["Exit code", (one) => one.status_code],
    ["Action", (one) => one.action],
    ["By", (one) => one.requested_by],
    ...namesOf("input_values").map((name): [string, (run: Run) => unknown] => [`Input ${name}`, (one) => one.input_values[name]]),
    ...namesOf("output_values").map((name): [string, (run: Run) => unknown] => [`Output ${name}`, (one) => one.output_values[name]]),
    ["Changes", (one) => one.changes.map((change) => `${change.item}: ${change.outcome}`).join("\n")],
  ];
  const differing = values.filter(([, valueOf]) => textOf(valueOf(other)) !== textOf(valueOf(run)));
  return [
    { name: "State", cellOf: (one) => <State of={one.status ?? one.state} /> },
    { name: "Queued", cellOf: (one) => <Time at={one.queued_time} /> },
    ...differing.map(([name, valueOf]) => ({ name, cellOf: (one: Run) => <span class="mono breaks">{textOf(valueOf(one))}</span> })),
  ];
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}
