import type { Schemas } from "../api/client";
import { stripLine } from "../model/ansi";
import { countBy } from "../model/groups";
import { StateFilter } from "../ui/filters";
import { State, Time } from "../ui/parts";
import { Link, query } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { shortType } from "../views/graph";
import { statusOf } from "./stacks";

export type Resource = Schemas["StackResource"];

const RESOURCES: Column<Resource>[] = [
  { title: "Resource", cell: (resource) => <ResourceLink resource={resource} />, sort: (resource) => resource.resource_name },
  { title: "State", cell: (resource) => <State of={resource.resource_status} />, sort: (resource) => resource.resource_status },
  { title: "Type", cell: (resource) => shortType(resource.resource_type), sort: (resource) => resource.resource_type, isWide: true },
  { title: "Reason", cell: (resource) => stripLine(resource.resource_status_reason ?? ""), isWide: true },
  { title: "Changed", cell: (resource) => <Time at={resource.updated_time} />, sort: (resource) => resource.updated_time },
];

/** Returns the page of what a resource stands for: a server, a deployment or a nested stack, of which `href` is the URL. */
export function pageOf(type: string, id: string | null, href: string | null): string[] | null {
  if (!id) return null;
  if (/^OS::(Nova|Stoker)::Server$/.test(type)) return ["servers", id];
  if (/::(SoftwareDeployment|StructuredDeployment)$/.test(type)) return ["runs", id];
  return href ? ["stacks", ...href.split("/").slice(-2).map(decodeURIComponent)] : null;
}

function ResourceLink({ resource }: { resource: Resource }) {
  const nested = resource.links.find((link) => link.rel === "nested")?.href ?? null;
  const page = pageOf(resource.resource_type, resource.physical_resource_id, nested);
  return page ? <Link to={page}>{resource.resource_name}</Link> : <>{resource.resource_name}</>;
}

/** The resources of a stack as a table. */
export function Resources({ resources }: { resources: readonly Resource[] }) {
  const status = query.value.get("status") ?? "";
  const shown = status ? resources.filter((resource) => statusOf(resource.resource_status) === status) : resources;
  return (
    <>
      <StateFilter counts={countBy(resources, (resource) => statusOf(resource.resource_status))} />
      <Table
        label="Resources"
        rows={shown}
        columns={RESOURCES}
        keyOf={(resource) => resource.resource_name}
        empty={resources.length > 0 ? "No resource is in this state." : "The stack has no resources."}
      />
    </>
  );
}
