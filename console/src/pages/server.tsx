import { get, type Schemas } from "../api/client";
import { Actions } from "../ui/actions";
import { useData } from "../ui/data";
import { Card, Data, Empty, Facts, Head, State, Time, Value } from "../ui/parts";
import { Link } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { approvalsOf, Labels } from "./servers";

type Server = Schemas["ShownServer"];
type Deployment = Schemas["SoftwareDeployment"];

export const DEPLOYMENTS: Column<Deployment>[] = [
  {
    title: "Deployment",
    cell: (deployment) => <Link to={["runs", deployment.id]}>{nameOf(deployment)}</Link>,
    sort: nameOf,
  },
  { title: "State", cell: (deployment) => <State of={deployment.status} />, sort: (deployment) => deployment.status ?? "" },
  { title: "Action", cell: (deployment) => deployment.action ?? "", sort: (deployment) => deployment.action ?? "", isWide: true },
  { title: "Reason", cell: (deployment) => deployment.status_reason ?? "", isWide: true },
  {
    title: "Changed",
    cell: (deployment) => <Time at={deployment.updated_time ?? deployment.creation_time} />,
    sort: (deployment) => deployment.updated_time ?? deployment.creation_time ?? "",
  },
];

/** Returns what people call a deployment: its stack and resource, or its config. */
export function nameOf(deployment: Deployment): string {
  if (deployment.stack_name && deployment.resource_name) return `${deployment.stack_name}/${deployment.resource_name}`;
  return deployment.config_name || deployment.id;
}

/** One server: its state, what is deployed on it, and what its agent reports. */
export function ServerPage({ names: [id = ""] }: { names: string[] }) {
  const loaded = useData(`server ${id}`, async (signal) => {
    const { server } = await get("/v1/{project}/servers/{server}", { server: id }, {}, signal);
    const query = { server_id: server.id, names: true };
    const { software_deployments } = await get("/v1/{project}/software_deployments", {}, query, signal);
    return { server, deployments: software_deployments };
  }, [`server:${id}`]);
  return (
    <>
      <Head title={loaded.data?.server.name ?? id} kind="Server">
        {loaded.data && <Actions of={approvalsOf(loaded.data.server)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ server, deployments }) => (
          <>
            {server.problem && <p class="banner bad">{server.problem}</p>}
            <Facts of={factsOf(server)} />
            <Card title="Deployments">
              <Table
                label="Deployments"
                rows={deployments}
                columns={DEPLOYMENTS}
                keyOf={(deployment) => deployment.id}
                empty={<Empty>Nothing is deployed on this server.</Empty>}
              />
            </Card>
            <Card title="Facts" aside={<Time at={server.facts_at} none="no facts yet" />}>
              <FactTable of={server.facts ?? {}} />
            </Card>
          </>
        )}
      </Data>
    </>
  );
}

function factsOf(server: Server) {
  const { policy, window } = server;
  return [
    ["State", <State of={server.status} />],
    ["Last seen", <Time at={server.last_seen} />],
    ["System", server.os],
    ["Address", server.address],
    ["Agent", `${server.agent_version ?? "none"}${server.agent_outdated ? " (outdated)" : ""}`],
    ["Labels", Object.keys(server.labels).length > 0 ? <Labels of={server.labels} /> : null],
    ["Policy", `${policyOf(policy.allow)}, ${policy.max_concurrent_runs} at a time (${server.policy_source})`],
    ["Maintenance", policy.maintenance_windows.length === 0 ? "any time" : window.open ? "open now" : "closed"],
    ["Id", <span class="mono">{server.id}</span>],
  ] as const;
}

/** Returns in words whose deployments a policy admits. */
function policyOf(allow: Server["policy"]["allow"]): string {
  if (allow === "PROJECT") return "the whole project";
  return allow === "STACK" ? "its own stack" : `its own stack and ${JSON.stringify(allow)}`;
}

function FactTable({ of: facts }: { of: Record<string, unknown> }) {
  const rows = flatten(facts);
  if (rows.length === 0) return <Empty>The agent has sent no facts.</Empty>;
  return <Facts of={rows.map(([name, value]) => [name, <Value of={value} />] as const)} />;
}

/** Returns facts by the names that selectors use, such as os.family. */
function flatten(facts: Record<string, unknown>, prefix = ""): [string, unknown][] {
  return Object.entries(facts).flatMap(([name, value]): [string, unknown][] => {
    if (value === null) return [];
    const isMap = typeof value === "object" && !Array.isArray(value);
    return isMap ? flatten(value as Record<string, unknown>, `${prefix}${name}.`) : [[prefix + name, value]];
  });
}
