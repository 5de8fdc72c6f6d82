import { change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { wordsOf } from "../model/state";
import { type Action, Actions } from "../ui/actions";
import { useData } from "../ui/data";
import { countBy, StateFilter } from "../ui/filters";
import { Card, Data, Empty, Facts, Head, State, Time, Value } from "../ui/parts";
import { Link, navigate, hrefOf, query, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { Graph, shortType } from "../views/graph";
import { statusOf } from "./stacks";

type Stack = Schemas["StackDetail"];
type Resource = Schemas["StackResource"];
type Event = Schemas["StackEvent"];

/** Resources above which the table is shown first. */
const MOST_NODES = 300;
const TABS = ["Resources", "Graph", "Events", "Outputs", "Parameters"] as const;
type Tab = (typeof TABS)[number];

const RESOURCES: Column<Resource>[] = [
  { title: "Resource", cell: (resource) => <ResourceLink resource={resource} />, sort: (resource) => resource.resource_name },
  { title: "State", cell: (resource) => <State of={resource.resource_status} />, sort: (resource) => resource.resource_status },
  { title: "Type", cell: (resource) => shortType(resource.resource_type), sort: (resource) => resource.resource_type, isWide: true },
  { title: "Reason", cell: (resource) => resource.resource_status_reason, isWide: true },
  { title: "Changed", cell: (resource) => <Time at={resource.updated_time} />, sort: (resource) => resource.updated_time },
];

const EVENTS: Column<Event>[] = [
  { title: "Time", cell: (event) => <Time at={event.event_time} /> },
  { title: "Resource", cell: (event) => event.resource_name },
  { title: "State", cell: (event) => <State of={event.resource_status} /> },
  { title: "Reason", cell: (event) => event.resource_status_reason, isWide: true },
];

/** Returns the page of what a resource stands for: a server, a deployment or a nested stack. */
function pageOf(resource: Resource): string[] | null {
  const id = resource.physical_resource_id;
  if (!id) return null;
  if (/^OS::(Nova|Stoker)::Server$/.test(resource.resource_type)) return ["servers", id];
  if (/::(SoftwareDeployment|StructuredDeployment)$/.test(resource.resource_type)) return ["runs", id];
  const nested = resource.links.find((link) => link.rel === "nested")?.href.split("/").slice(-2);
  return nested ? ["stacks", ...nested.map(decodeURIComponent)] : null;
}

function ResourceLink({ resource }: { resource: Resource }) {
  const page = pageOf(resource);
  return page ? <Link to={page}>{resource.resource_name}</Link> : <>{resource.resource_name}</>;
}

/** One stack: its resources as a table and as a graph, events, outputs and parameters. */
export function StackPage({ names: [name = "", id = ""] }: { names: string[] }) {
  const path = { stack_name: name, stack_id: id };
  const loaded = useData(`stack ${id}`, async (signal) => {
    const [{ stack }, { resources }] = await Promise.all([
      get("/v1/{project}/stacks/{stack_name}/{stack_id}", path, {}, signal),
      get("/v1/{project}/stacks/{stack_name}/{stack_id}/resources", path, {}, signal),
    ]);
    return { stack, resources };
  }, [`stack:${id}`]);
  return (
    <>
      <Head title={name} kind="Stack">
        {loaded.data && <Actions of={actionsOf(loaded.data.stack)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ stack, resources }) => (
          <>
            {stack.description && <p class="lead">{stack.description}</p>}
            <Facts of={factsOf(stack)} />
            <Tabs />
            <Part stack={stack} resources={resources} path={path} at={loaded.at} />
          </>
        )}
      </Data>
    </>
  );
}

function factsOf(stack: Stack) {
  return [
    ["State", <State of={stack.stack_status} />],
    ["Reason", stack.stack_status_reason],
    ["Created", <Time at={stack.creation_time} />],
    ["Changed", <Time at={stack.updated_time} />],
    ["Owner", stack.stack_owner],
    ["Parent", stack.parent ? <span class="mono">{stack.parent}</span> : undefined],
    ["Id", <span class="mono">{stack.id}</span>],
  ] as const;
}

function readTab(): Tab {
  return TABS.find((tab) => tab.toLowerCase() === query.value.get("tab")) ?? "Resources";
}

function Tabs() {
  return (
    <div class="tabs" role="group" aria-label="Parts of the stack">
      {TABS.map((tab) => (
        <button
          key={tab}
          aria-pressed={tab === readTab()}
          onClick={() => setQuery({ tab: tab === "Resources" ? "" : tab.toLowerCase(), status: "", sort: "" })}
        >
          {tab}
        </button>
      ))}
    </div>
  );
}

function Part({ stack, resources, path, at }: { stack: Stack; resources: Resource[]; path: Record<string, string>; at: number }) {
  switch (readTab()) {
    case "Resources":
      return <Resources resources={resources} />;
    case "Graph":
      return <GraphPart resources={resources} />;
    case "Events":
      return <Events path={path} at={at} />;
    case "Outputs":
      return <Outputs stack={stack} />;
    case "Parameters":
      return <Facts of={Object.entries(stack.parameters).map(([name, value]) => [name, <Value of={value} />] as const)} />;
  }
}

function Resources({ resources }: { resources: readonly Resource[] }) {
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
        empty={<Empty>{resources.length > 0 ? "No resource is in this state." : "The stack has no resources."}</Empty>}
      />
    </>
  );
}

function GraphPart({ resources }: { resources: Resource[] }) {
  const failed = resources.filter((resource) => resource.resource_status.endsWith("FAILED"));
  const open = (name: string) => {
    const page = pageOf(resources.find((resource) => resource.resource_name === name)!);
    if (page) navigate(hrefOf(page));
  };
  if (resources.length === 0) return <Empty>The stack has no resources.</Empty>;
  if (resources.length > MOST_NODES && query.value.get("all") !== "1") {
    return (
      <Empty>
        The stack has {resources.length} resources. <button onClick={() => setQuery({ all: "1" })}>Draw all of them</button>
      </Empty>
    );
  }
  return (
    <>
      <p>
        {resources.length} resources, {failed.length} failed
        {failed.map((resource) => (
          <span key={resource.resource_name}>
            {" · "}
            <ResourceLink resource={resource} />
          </span>
        ))}
      </p>
      <Graph resources={resources} onOpen={open} />
    </>
  );
}

/** The newest events, read again when the stack was: at the time `at`. */
function Events({ path, at }: { path: Record<string, string>; at: number }) {
  const events = useData(`events ${path["stack_id"]} ${at}`, async (signal) => {
    const query = { limit: 500, sort_dir: "desc" as const, nested_depth: 5 };
    return (await get("/v1/{project}/stacks/{stack_name}/{stack_id}/events", path, query, signal)).events;
  }, 0);
  return (
    <Data of={events}>
      {(list) => (
        <Table label="Events" rows={list} columns={EVENTS} keyOf={(event) => event.id} empty={<Empty>There are no events.</Empty>} />
      )}
    </Data>
  );
}

function Outputs({ stack }: { stack: Stack }) {
  const outputs = stack.outputs ?? [];
  if (outputs.length === 0) return <Empty>The template has no outputs.</Empty>;
  return (
    <Card title="Outputs">
      <Facts of={outputs.map((output) => [output.output_key, <Value of={output.output_value} />] as const)} />
    </Card>
  );
}

function actionsOf(stack: Stack): Action[] {
  const names = { stack_name: stack.stack_name, stack_id: stack.id };
  if (stack.parent || !session.can_write) return [];
  const act = (label: string, key: string, question: string): Action => ({
    label,
    question,
    run: () => change("POST", "/v1/{project}/stacks/{stack_name}/{stack_id}/actions", names, { [key]: null }),
  });
  const name = stack.stack_name;
  if (stack.stack_status.endsWith("IN_PROGRESS")) {
    return [act("Cancel", "cancel_without_rollback", `The operation (${wordsOf(stack.stack_status)}) stops. Nothing is rolled back.`)];
  }
  const isSuspended = stack.stack_status === "SUSPEND_COMPLETE";
  return [
    act("Check", "check", `Stoker checks whether the resources of ${name} are as they should be.`),
    isSuspended
      ? act("Resume", "resume", `The deployments of ${name} run their RESUME actions.`)
      : act("Suspend", "suspend", `The deployments of ${name} run their SUSPEND actions.`),
    {
      label: "Delete",
      question: `All resources of ${name} are deleted, and its deployments run their DELETE actions.`,
      isDangerous: true,
      run: () => change("DELETE", "/v1/{project}/stacks/{stack_name}/{stack_id}", names),
    },
  ];
}
