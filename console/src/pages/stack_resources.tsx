import type { ComponentChildren } from "preact";
import type { Schemas } from "../api/client";
import { stripLine } from "../model/ansi";
import { drawGraph, pathTo, type Vertex } from "../model/graph";
import { countBy } from "../model/groups";
import { SYMBOLS, toneOf, wordsOf } from "../model/state";
import { useGet } from "../ui/data";
import { StateFilter } from "../ui/filters";
import { Data, Empty, State, Time } from "../ui/parts";
import { Link, navigate, query, segments, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { downloadGraph, Graph, shortType } from "../views/graph";
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

/** Boxes above which the table is shown first. */
const MOST = 300;
/** Levels of nested stacks that are read when any is unfolded. */
const DEPTH = 10;

/** The graph of a stack. What is unfolded is in the URL. `table` takes its place if it is too large. */
export function GraphPart({ path, table }: { path: { stack_name: string; stack_id: string }; table: ComponentChildren }) {
  const open = new Set((query.value.get("open") ?? "").split(",").filter(Boolean));
  const nested_depth = open.size > 0 ? DEPTH : 0;
  const loaded = useGet("/v1/{project}/stacks/{stack_name}/{stack_id}/graph", path, { nested_depth }, 3);
  const toggle = (id: string) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setQuery({ open: [...next].join(",") });
  };
  const act = ({ node, isOpen }: Vertex) => {
    const page = pageOf(node.resource_type, node.physical_resource_id, null);
    if (isOpen !== null) toggle(node.id);
    else if (page) navigate(page);
  };
  return (
    <Data of={loaded}>
      {({ graph }) => {
        const drawing = drawGraph(graph, path.stack_id, open);
        const failed = graph.nodes.filter((node) => node.resource_status.endsWith("FAILED"));
        const names = new Map(graph.nodes.map((node) => [node.id, node.resource_name]));
        if (graph.nodes.length === 0) return <Empty>The stack has no resources.</Empty>;
        const isTable = drawing.vertices.size > MOST && query.value.get("all") !== "1";
        return (
          <>
            <div class="graph-bar">
              <p>
                {graph.nodes.length} resources
                {[...countBy(graph.nodes, (node) => statusOf(node.resource_status))].map(([state, count]) => (
                  <span key={state} class={toneOf(state)}>
                    {" · "}
                    <span aria-hidden="true">{SYMBOLS[toneOf(state)]}</span> {count} {wordsOf(state)}
                  </span>
                ))}
                {failed.map((node) => {
                  const page = pageOf(node.resource_type, node.physical_resource_id, null);
                  const unfolded = new Set([...open, ...pathTo(graph, node)]);
                  return (
                    <span key={node.id}>
                      {" · "}
                      {page ? (
                        <Link to={page}>{node.resource_name}</Link>
                      ) : unfolded.size > open.size ? (
                        <Link to={segments.value} with={{ ...Object.fromEntries(query.value), open: [...unfolded].join(",") }}>
                          {node.resource_name}
                        </Link>
                      ) : (
                        node.resource_name
                      )}
                    </span>
                  );
                })}
              </p>
              <div class="actions">
                {open.size > 0 && <button class="view" onClick={() => setQuery({ open: "" })}>Fold all</button>}
                {!isTable && <button class="view" onClick={() => downloadGraph(path.stack_name)}>Download as SVG</button>}
                {isTable && <button class="view" onClick={() => setQuery({ all: "1" })}>Draw all of them</button>}
              </div>
            </div>
            {isTable ? table : <Graph drawing={drawing} names={names} onOpen={act} />}
          </>
        );
      }}
    </Data>
  );
}
