import { useMemo } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { type LineStore, textOf } from "../model/lines";
import { wordsOf } from "../model/state";
import { type Action, Actions } from "../ui/actions";
import { useData } from "../ui/data";
import { type Output, useOutput } from "../ui/output";
import { Card, Data, Duration, Empty, Facts, Head, LiveState, Row, State, Time, Values } from "../ui/parts";
import { Link, query, setQuery } from "../ui/router";
import { Items } from "../views/differences";
import { Log } from "../views/log";
import { RunComparison } from "./run_comparison";
import { nameOf } from "./runs";

type Deployment = Schemas["SoftwareDeployment"];
type Run = Schemas["DeploymentRun"];

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
  const deployment = loaded.data?.deployment;
  return (
    <>
      <Head title={deployment ? nameOf(deployment) : id} kind="Run">
        {deployment && <Actions of={actionsOf(deployment)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ deployment, runs }) => {
          const number = Number(query.value.get("run") ?? runs[0]?.number);
          const run = runs.find((one) => one.number === number) ?? runs[0];
          if (!run) return <Empty>The deployment has not run yet: it waits for its server, or its action has nothing to do.</Empty>;
          return <Shown deployment={deployment} run={run} runs={runs} onStatus={loaded.reload} />;
        }}
      </Data>
    </>
  );
}

function Shown({ deployment, run, runs, onStatus }: { deployment: Deployment; run: Run; runs: Run[]; onStatus: () => void }) {
  const isLive = run.number === runs[0]?.number && run.state !== "DONE";
  const output = useOutput(deployment.id, run.config_id, isLive, onStatus);
  const other = runs.find((one) => `${one.number}` === query.value.get("with") && one !== run);
  return (
    <LiveState {...output.live}>
      <Facts of={factsOf(deployment, run)} />
      <LastError output={output} run={run} />
      <Times run={run} />
      <SinceItWorked run={run} runs={runs} />
      {other && <RunComparison deployment={deployment.id} run={run} other={other} />}
      <Card title="Output">
        {output.error ? (
          <p class="problem">{output.error.message}</p>
        ) : (
          <Log output={output} of={{ id: deployment.id, run: run.config_id, isLive }} />
        )}
      </Card>
      {run.changes.length > 0 && (
        <Card title="Changes">
          <Items of={run.changes} />
        </Card>
      )}
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
    </LiveState>
  );
}

function factsOf(deployment: Deployment, run: Run) {
  return [
    ["State", <State of={run.state === "DONE" ? run.status : run.state} />],
    ["Exit code", run.status_code ?? undefined],
    ["Server", <Link to={["servers", deployment.server_id]}>{deployment.server_name ?? deployment.server_id}</Link>],
    ["Config", deployment.config_name],
    ["Action", run.action ? wordsOf(run.action) : null],
    ["Reason", run.status_reason || undefined],
    ["Progress", run.percent === null ? undefined : `${run.percent} % ${run.message ?? ""}`],
    ["Changed", run.changed === null ? undefined : run.changed ? "yes" : "no"],
    ["By", run.requested_by ?? "the stack"],
  ] as const;
}

/** The last line of standard error of a failed run, which mostly says why. */
function LastError({ output, run }: { output: Output; run: Run }) {
  const text = useMemo(() => lastError(output.store), [output.store, output.version]);
  if (run.status !== "FAILED" || text === "") return null;
  return <p class="last-error mono">{text.slice(0, 500)}</p>;
}

function lastError(store: LineStore): string {
  const line = store.lines.findLast((one) => one.stream === "stderr" && one.gap === 0 && textOf(one).trim() !== "");
  return line ? textOf(line) : "";
}

/** When the run was queued, delivered, began and ended. */
function Times({ run }: { run: Run }) {
  const steps = [
    ["queued", run.queued_time],
    ["delivered", run.delivered_time],
    ["running", run.start_time],
    ["reported", run.end_time],
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

/** Compares a failed run with the last one before it that succeeded. */
function SinceItWorked({ run, runs }: { run: Run; runs: readonly Run[] }) {
  const worked = runs.find((one) => one.number < run.number && one.status === "COMPLETE");
  if (run.status !== "FAILED" || !worked) return null;
  const isShown = query.value.get("with") === `${worked.number}`;
  return (
    <p>
      <button aria-pressed={isShown} onClick={() => setQuery({ with: isShown ? "" : `${worked.number}` })}>
        What changed since it last worked
      </button>
    </p>
  );
}

/** All runs of the deployment, each of which can be compared with the one that is shown. */
function Runs({ runs, current }: { runs: readonly Run[]; current: Run }) {
  const compared = query.value.get("with") ?? "";
  const choose = (run: Run) => setQuery({ run: run === runs[0] ? "" : `${run.number}`, lines: "", with: "" });
  const compare = (run: Run) => setQuery({ with: compared === `${run.number}` ? "" : `${run.number}` });
  return (
    <ul class="rows">
      {runs.map((run) => (
        <Row
          key={run.number}
          time={run.queued_time}
          name={
            <button class="link" aria-pressed={run === current} onClick={() => choose(run)}>
              {run.number} {wordsOf(run.action)}
            </button>
          }
        >
          <State of={run.state === "DONE" ? run.status : run.state} />{" "}
          {run !== current && (
            <button class="link" aria-pressed={compared === `${run.number}`} aria-label={`Compare with run ${run.number}`} onClick={() => compare(run)}>
              compare
            </button>
          )}
        </Row>
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
        question: "The agent stops the run. A run that has not started does not start.",
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
