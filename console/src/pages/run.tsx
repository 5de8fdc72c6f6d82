import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, change, get, type Schemas, url } from "../api/client";
import { type Connection, follow } from "../api/stream";
import { LineStore } from "../model/lines";
import { stripLine } from "../model/ansi";
import { wordsOf } from "../model/state";
import { type Action, Actions } from "../ui/actions";
import { type Loaded, useData } from "../ui/data";
import { LiveState } from "../ui/live";
import { Card, Data, Duration, Empty, Facts, Head, State, Time, Value } from "../ui/parts";
import { Diff } from "../ui/diff";
import { Link, query, setQuery } from "../ui/router";
import { Log } from "../views/log";
import { nameOf } from "./server";

type Deployment = Schemas["SoftwareDeployment"];
type Run = Schemas["DeploymentRun"];
type Chunk = Schemas["OutputChunk"];

interface Output {
  /** The lines of each run, by the id of its config. */
  stores: Map<string, LineStore>;
  version: number;
  connection: Connection;
  since: number;
  error: ApiError | null;
}

/** Follows the output of a deployment's runs until the last one ends. `round` follows it again. */
function useOutput(id: string, round: string, onStatus: () => void): Output {
  const stores = useRef(new Map<string, LineStore>());
  const [version, setVersion] = useState(0);
  const [connection, setConnection] = useState<[Connection, number]>(["connecting", Date.now()]);
  const [error, setError] = useState<ApiError | null>(null);
  useEffect(() => {
    stores.current = new Map();
    let frame = 0;
    const paint = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion((last) => last + 1);
      });
    };
    const stream = follow(
      url("/v1/{project}/events", {}, { subject: `deployment:${id}` }),
      (name, data) => {
        if (name === "log") {
          const chunk = data as Chunk;
          const store = stores.current.get(chunk.config_id) ?? new LineStore();
          stores.current.set(chunk.config_id, store);
          store.add(chunk);
          paint();
        } else if (name === "status" || name === "end") onStatus();
      },
      (state, problem) => {
        setConnection([state, Date.now()]);
        setError(problem ?? null);
      },
    );
    return () => {
      stream.close();
      cancelAnimationFrame(frame);
    };
  }, [id, round]);
  return { stores: stores.current, version, connection: connection[0], since: connection[1], error };
}

/** One run of a deployment: what it did, and its output while it writes it. Earlier runs are a click away. */
export function RunPage({ names: [id = ""] }: { names: string[] }) {
  const loaded = useData(`run ${id}`, async (signal) => {
    const names = { deployment_id: id };
    const [{ software_deployment }, { runs }] = await Promise.all([
      get("/v1/{project}/software_deployments/{deployment_id}", names, { names: true }, signal),
      get("/v1/{project}/software_deployments/{deployment_id}/runs", names, {}, signal),
    ]);
    return { deployment: software_deployment, runs };
  });
  const newest = loaded.data?.runs[0];
  const output = useOutput(id, `${newest?.number ?? ""}`, loaded.reload);
  const deployment = loaded.data?.deployment;
  return (
    <>
      <Head title={deployment ? nameOf(deployment) : id} kind="Run">
        {deployment && <Actions of={actionsOf(deployment)} onDone={loaded.reload} />}
      </Head>
      <Loadable loaded={loaded} output={output} />
    </>
  );
}

function Loadable({ loaded, output }: { loaded: Loaded<{ deployment: Deployment; runs: Run[] }>; output: Output }) {
  return (
    <LiveState connection={output.connection} since={output.since}>
      <Data of={loaded}>
        {({ deployment, runs }) => {
          const number = Number(query.value.get("run") ?? runs[0]?.number);
          const run = runs.find((one) => one.number === number) ?? runs[0];
          if (!run) return <Empty>The deployment has not run: it waits for its server, or its action has nothing to do.</Empty>;
          return <Shown deployment={deployment} run={run} runs={runs} output={output} />;
        }}
      </Data>
    </LiveState>
  );
}

function Shown({ deployment, run, runs, output }: { deployment: Deployment; run: Run; runs: Run[]; output: Output }) {
  const empty = useMemo(() => new LineStore(), []);
  const store = output.stores.get(run.config_id) ?? empty;
  const isLive = run.number === runs[0]?.number && run.state !== "DONE";
  return (
    <>
      <Facts of={factsOf(deployment, run)} />
      <LastError store={store} run={run} />
      <Times run={run} />
      <Card title="Output">
        {output.error ? <p class="problem">{output.error.message}</p> : <Log store={store} version={output.version} isLive={isLive} />}
      </Card>
      {run.changes.length > 0 && <Changes run={run} />}
      <div class="columns">
        <Card title="Inputs">
          <Values of={run.input_values} none="The run has no inputs." />
        </Card>
        <Card title="Outputs">
          <Values of={run.output_values} none="The run has no outputs." />
        </Card>
        <Card title="Runs">
          <Runs runs={runs} current={run} />
        </Card>
      </div>
    </>
  );
}

function factsOf(deployment: Deployment, run: Run) {
  return [
    ["State", <State of={run.state === "DONE" ? run.status : run.state} />],
    ["Server", <Link to={["servers", deployment.server_id]}>{deployment.server_name ?? deployment.server_id}</Link>],
    ["Config", deployment.config_name],
    ["Action", run.action ? wordsOf(run.action) : null],
    ["Exit code", run.status_code ?? undefined],
    ["Reason", run.status_reason || undefined],
    ["Progress", run.percent === null ? undefined : `${run.percent} % ${run.message ?? ""}`],
    ["Changed", run.changed === null ? undefined : run.changed ? "yes" : "no"],
    ["By", run.requested_by ?? "the stack"],
  ] as const;
}

/** The last line of standard error of a failed run, which mostly says why. */
function LastError({ store, run }: { store: LineStore; run: Run }) {
  if (run.status !== "FAILED") return null;
  const line = store.lines.findLast((one) => one.stream === "stderr" && one.text.trim() !== "");
  if (!line) return null;
  return <p class="last-error mono">{stripLine(line.text).slice(0, 500)}</p>;
}

/** When the run was queued, delivered, began and ended. */
function Times({ run }: { run: Run }) {
  const steps = [
    ["queued", run.queued_time],
    ["delivered", run.delivered_time],
    ["began", run.start_time],
    ["ended", run.end_time],
  ] as const;
  return (
    <ol class="steps" aria-label="Times of the run">
      {steps.map(([name, time], index) => (
        <li key={name} class={time ? "reached" : ""}>
          <b>{name}</b> <Time at={time} none="not yet" />
          {time && index > 0 && steps[index - 1]![1] && (
            <span class="quiet">
              {" (after "}
              <Duration from={steps[index - 1]![1]} to={time} />)
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}

function Changes({ run }: { run: Run }) {
  return (
    <Card title="Changes">
      {run.changes.map((item, index) => (
        <details key={index} open={run.changes.length < 4}>
          <summary>
            {item.item} <span class="quiet">{item.outcome}</span>
          </summary>
          {item.diff && <Diff of={item.diff} />}
        </details>
      ))}
    </Card>
  );
}

function Values({ of: values, none }: { of: Record<string, unknown>; none: string }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return <Empty>{none}</Empty>;
  return <Facts of={entries.map(([name, value]) => [name, <Value of={value} />] as const)} />;
}

function Runs({ runs, current }: { runs: readonly Run[]; current: Run }) {
  return (
    <ul class="rows">
      {runs.map((run, index) => (
        <li key={run.number}>
          <button class="link" aria-pressed={run === current} onClick={() => setQuery({ run: index === 0 ? "" : `${run.number}`, lines: "" })}>
            {run.number} {wordsOf(run.action)}
          </button>
          <span class="row-text">
            <State of={run.state === "DONE" ? run.status : run.state} />
          </span>
          <span class="row-time">
            <Time at={run.queued_time} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function actionsOf(deployment: Deployment): Action[] {
  const names = { deployment_id: deployment.id };
  if (deployment.status === "IN_PROGRESS") {
    return [
      {
        label: "Cancel",
        question: "The agent stops the run; a run that has not begun does not begin.",
        isDangerous: true,
        run: () => change("POST", "/v1/{project}/software_deployments/{deployment_id}/cancel", names, {}),
      },
    ];
  }
  if (deployment.status !== "FAILED" || deployment.stack_name) return [];
  return [
    {
      label: "Retry",
      question: "The run is repeated with the same config and inputs.",
      run: () => change("POST", "/v1/{project}/software_deployments/{deployment_id}/retry", names, {}),
    },
  ];
}
