import type { Schemas } from "../api/client";
import { useGet } from "../ui/data";
import { Data, Head } from "../ui/parts";
import { Link, readQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { DEPLOYMENTS as OF_SERVER } from "./server";

type Deployment = Schemas["SoftwareDeployment"];
type Status = "IN_PROGRESS" | "FAILED" | "COMPLETE";

const TITLES: Record<Status, string> = { IN_PROGRESS: "Deployments in progress", FAILED: "Failed deployments", COMPLETE: "Completed deployments" };
/** Deployments on several servers. */
export const DEPLOYMENTS: Column<Deployment>[] = [
  ...OF_SERVER.slice(0, 1),
  {
    title: "Server",
    cell: (deployment) => <Link to={["servers", deployment.server_id]}>{deployment.server_name ?? deployment.server_id}</Link>,
    sort: (deployment) => deployment.server_name ?? "",
  },
  ...OF_SERVER.slice(1),
];

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
