import type { Schemas } from "../api/client";
import { useGet } from "../ui/data";
import { Data, Head, State, Time } from "../ui/parts";
import { Link, readQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";

type Deployment = Schemas["SoftwareDeployment"];
type Status = "IN_PROGRESS" | "FAILED" | "COMPLETE";

const TITLES: Record<Status, string> = { IN_PROGRESS: "Deployments in progress", FAILED: "Failed deployments", COMPLETE: "Completed deployments" };

export const DEPLOYMENTS: Column<Deployment>[] = [
  { title: "Deployment", cell: (deployment) => <Link to={["runs", deployment.id]}>{nameOf(deployment)}</Link>, sort: nameOf },
  {
    title: "Server",
    cell: (deployment) => <Link to={["servers", deployment.server_id]}>{deployment.server_name ?? deployment.server_id}</Link>,
    sort: (deployment) => deployment.server_name ?? "",
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
export function nameOf(deployment: Pick<Deployment, "id" | "stack_name" | "resource_name" | "config_name">): string {
  if (deployment.stack_name && deployment.resource_name) return `${deployment.stack_name}/${deployment.resource_name}`;
  return deployment.config_name || deployment.id;
}

/** Deployments with one status, which the URL filters as the list of the API; the newest first. */
export function RunsPage() {
  const { status, of_client, ended_since } = readQuery("status", "of_client", "ended_since");
  const filter = { status: (status || "FAILED") as Status, of_client: of_client === "true", ended_since, names: true };
  const deployments = useGet("/v1/{project}/software_deployments", {}, { ...filter, newest_first: true }, ["overview"]);
  return (
    <>
      <Head title={TITLES[filter.status]} />
      <p class="lead">
        {filter.of_client ? "Without the deployments of stacks and triggers, which count there." : "Deployments of clients, stacks and triggers."}
        {filter.ended_since && ` Ended since ${new Date(filter.ended_since).toLocaleString()}.`}
      </p>
      <Data of={deployments}>
        {({ software_deployments: list }) => (
          <Table label="Deployments" rows={list} columns={DEPLOYMENTS} keyOf={(one) => one.id} empty="There are no such deployments." />
        )}
      </Data>
    </>
  );
}
