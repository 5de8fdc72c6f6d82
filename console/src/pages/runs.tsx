import { get, type Schemas } from "../api/client";
import { useData } from "../ui/data";
import { Data, Head } from "../ui/parts";
import { Link, query } from "../ui/router";
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
  const filter = {
    status: (query.value.get("status") ?? "FAILED") as Status,
    of_client: query.value.get("of_client") === "true",
    ...(query.value.get("ended_since") ? { ended_since: query.value.get("ended_since")! } : {}),
  };
  const deployments = useData(`runs ${JSON.stringify(filter)}`, async (signal) => {
    const path = "/v1/{project}/software_deployments";
    return (await get(path, {}, { ...filter, names: true }, signal)).software_deployments.reverse();
  }, ["overview"]);
  return (
    <>
      <Head title={TITLES[filter.status]} />
      <p class="lead">
        {filter.of_client ? "Without those of stacks and triggers, which are counted there." : "Deployments of clients, stacks and triggers."}
        {filter.ended_since && ` Ended since ${new Date(filter.ended_since).toLocaleString()}.`}
      </p>
      <Data of={deployments}>
        {(list) => (
          <Table label="Deployments" rows={list} columns={DEPLOYMENTS} keyOf={(one) => one.id} empty="There is no such deployment." />
        )}
      </Data>
    </>
  );
}
