import { useState } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { joinNames, parseLabels } from "../model/targets";
import { type Action, ActionLink, Actions, DialogButton, FormDialog } from "../ui/actions";
import { useData } from "../ui/data";
import { textOf, TextField } from "../ui/form";
import { Card, Data, Facts, Head, Row, State, Time, Values } from "../ui/parts";
import { Link } from "../ui/router";
import type { Server } from "../ui/servers";
import { type Column, Table } from "../ui/table";
import { DEPLOYMENTS, nameOf } from "./runs";
import { Labels } from "./servers";

type Deployment = Schemas["SoftwareDeployment"];
type Check = Schemas["ShownCheck"];

/** Runs of a page of the history. */
const PAGE = 50;

const OF_SERVER = DEPLOYMENTS.filter(({ title }) => title !== "Server");

const CHECKS: Column<Check>[] = [
  { title: "Deployment", cell: (check) => <Link to={["runs", check.deployment_id]}>{check.name ?? check.deployment_id}</Link> },
  { title: "State", cell: (check) => <State of={check.state} /> },
  { title: "Difference", cell: (check) => check.summary, isWide: true },
  { title: "Since", cell: (check) => <Time at={check.since} /> },
];

/** One server: its state, its rules, what runs and ran on it, its drift, and what its agent reports. */
export function ServerPage({ names: [id = ""] }: { names: string[] }) {
  const [count, setCount] = useState(PAGE);
  const loaded = useData(`server ${id} ${count}`, async (signal) => {
    const { server } = await get("/v1/{project}/servers/{server}", { server: id }, {}, signal);
    const query = { server_id: server.id, names: true, newest_first: true, limit: count };
    const [{ software_deployments: deployments }, { checks }] = await Promise.all([
      get("/v1/{project}/software_deployments", {}, query, signal),
      get("/v1/{project}/checks", {}, { server: server.id }, signal),
    ]);
    return { server, deployments, checks };
  }, [`server:${id}`]);
  const server = loaded.data?.server;
  return (
    <>
      <Head title={server?.name ?? id} kind="Server">
        {server && <ServerButtons server={server} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ server, deployments, checks }) => (
          <>
            {server.problem && <p class="banner bad">{server.problem}</p>}
            <Facts of={factsOf(server)} />
            <Current deployments={deployments} />
            <div class="columns">
              <Rules server={server} />
              <Card title="Drift">
                <Table label="Drift" isSorted rows={checks} columns={CHECKS} keyOf={(check) => check.deployment_id} empty="No deployment on this server is checked." />
              </Card>
            </div>
            <Card title="History">
              <Table
                label="History"
                rows={deployments}
                columns={OF_SERVER}
                keyOf={(deployment) => deployment.id}
                empty={
                  <>
                    Nothing is deployed on this server. <Link to={["run"]} with={{ servers: joinNames([server.name]) }}>Run a command</Link>
                  </>
                }
              />
              {deployments.length === count && <button onClick={() => setCount(count + 200)}>Show earlier deployments</button>}
            </Card>
            <Card title="Facts" aside={<Time at={server.facts_at} none="no facts yet" />}>
              <Values of={Object.fromEntries(flatten(server.facts ?? {}))} none="The agent has sent no facts." />
            </Card>
          </>
        )}
      </Data>
    </>
  );
}

function ServerButtons({ server, onDone }: { server: Server; onDone: () => void }) {
  const servers = joinNames([server.name]);
  return (
    <>
      {server.status === "PENDING_APPROVAL" ? (
        <Actions of={approvalsOf(server)} onDone={onDone} />
      ) : (
        <>
          <ActionLink to={["run"]} with={{ servers }}>
            Run a command
          </ActionLink>
          {server.agent_outdated && (
            <ActionLink to={["run"]} with={{ servers, what: "upgrade" }}>
              Upgrade the agent
            </ActionLink>
          )}
        </>
      )}
      <DialogButton label="Edit labels …">{(close) => <LabelDialog server={server} onDone={onDone} onClose={close} />}</DialogButton>
    </>
  );
}

function LabelDialog({ server, onDone, onClose }: { server: Server; onDone: () => void; onClose: () => void }) {
  const save = async (values: FormData) => {
    const text = textOf(values, "labels");
    const next = text ? parseLabels(text) : {};
    const removed = Object.keys(server.labels).filter((name) => !(name in next)).map((name) => [name, null] as const);
    const labels = { ...next, ...Object.fromEntries(removed) };
    await change("PATCH", "/v1/{project}/servers/{server}", { server: server.id }, { labels });
    onDone();
  };
  const present = joinNames(Object.entries(server.labels).map(([name, value]) => `${name}=${value}`));
  return (
    <FormDialog title={`Labels of ${server.name}`} label="Save" submit={save} onClose={onClose}>
      <TextField name="labels" label="Labels, as NAME=VALUE" rows={4} value={present} isFirst />
    </FormDialog>
  );
}

/** What a user can do with a server that waits for approval. */
function approvalsOf(server: Server): Action[] {
  const names = { server: server.id };
  return [
    {
      label: "Approve",
      question: `${server.name} becomes a server of this project, and may fetch what is deployed on it.`,
      run: () => change("POST", "/v1/{project}/servers/{server}/approve", names, {}),
    },
    {
      label: "Reject",
      question: `${server.name} does not become a server. Its agent has to enroll again.`,
      isDangerous: true,
      run: () => change("POST", "/v1/{project}/servers/{server}/reject", names, {}),
    },
  ];
}

function Current({ deployments }: { deployments: readonly Deployment[] }) {
  const current = deployments.filter((deployment) => deployment.status === "IN_PROGRESS");
  if (current.length === 0) return null;
  return (
    <Card title="Running and waiting">
      <ul class="rows">
        {current.map((deployment) => (
          <Row
            key={deployment.id}
            name={<Link to={["runs", deployment.id]}>{nameOf(deployment)}</Link>}
            time={deployment.updated_time ?? deployment.creation_time ?? null}
          >
            {deployment.status_reason || <State of={deployment.status} />}
          </Row>
        ))}
      </ul>
    </Card>
  );
}

function Rules({ server }: { server: Server }) {
  const { policy, window } = server;
  const windows = policy.maintenance_windows.map((one) => (
    <p key={`${one.cron} ${one.timezone}`}>
      <span class="mono">{one.cron}</span>, {one.minutes} min ({one.timezone})
    </p>
  ));
  return (
    <Card title="Policy" aside={server.policy_source === "site" ? "of the site" : "of this server"}>
      <Facts
        of={[
          ["Accepts deployments of", policyOf(policy.allow)],
          ["Config groups", policy.groups === null ? "all" : policy.groups.join(", ") || "none"],
          ["Concurrent runs", `${policy.max_concurrent_runs}`],
          ["Maintenance", windows.length > 0 ? windows : "any time"],
          ["Now", windows.length > 0 ? (window.open ? "open" : "closed") : undefined],
          ["Until", windows.length > 0 && window.changes_at ? <Time at={window.changes_at} /> : undefined],
        ]}
      />
    </Card>
  );
}

function factsOf(server: Server) {
  return [
    ["State", <State of={server.status} />],
    ["Last seen", <Time at={server.last_seen} />],
    ["System", server.os],
    ["Address", server.address],
    ["Agent", `${server.agent_version ?? "none"}${server.agent_outdated ? " (outdated)" : ""}`],
    ["Labels", Object.keys(server.labels).length > 0 ? <Labels of={server.labels} /> : null],
    ["Host name", server.hostname],
    ["Id", <span class="mono">{server.id}</span>],
  ] as const;
}

/** Returns in words whose deployments a policy admits. */
function policyOf(allow: Server["policy"]["allow"]): string {
  if (allow === "PROJECT") return "the whole project";
  return allow === "STACK" ? "its own stack" : `its own stack and ${JSON.stringify(allow)}`;
}

/** Returns facts by the names that selectors use, such as os.family. */
function flatten(facts: Record<string, unknown>, prefix = ""): [string, unknown][] {
  return Object.entries(facts).flatMap(([name, value]): [string, unknown][] => {
    if (value === null) return [];
    const isMap = typeof value === "object" && !Array.isArray(value);
    if (isMap) return flatten(value as Record<string, unknown>, `${prefix}${name}.`);
    return [[prefix + name, Array.isArray(value) ? value.join(", ") : value === "" ? "version unknown" : value]];
  });
}
