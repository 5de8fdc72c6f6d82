import { change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { stripLine } from "../model/ansi";
import { wordsOf } from "../model/state";
import { type Action, Actions } from "../ui/actions";
import { useData, useGet } from "../ui/data";
import { lazy } from "../ui/lazy";
import { Card, Data, Facts, Head, State, Time, Values } from "../ui/parts";
import { Link, query, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { GraphPart } from "./stack_graph";
import { type Resource, Resources } from "./stack_resources";
import { Snapshots } from "./stack_snapshots";

type Stack = Schemas["StackDetail"];
type Event = Schemas["StackEvent"];

const TABS = ["Resources", "Graph", "Events", "Outputs", "Parameters", "Template", "Snapshots"] as const;
type Tab = (typeof TABS)[number];
/** Characters of a reason that has a row of its own. */
const LONG = 60;
const SourcePart = lazy(() => import("./stack_source"), "SourcePart");

const EVENTS: Column<Event>[] = [
  { title: "Time", cell: (event) => <Time at={event.event_time} /> },
  { title: "Resource", cell: (event) => event.resource_name },
  { title: "State", cell: (event) => <State of={event.resource_status} /> },
  { title: "Reason", cell: (event) => stripLine(event.resource_status_reason ?? ""), isWide: true },
];

/** One stack: its resources as a table and as a graph, events, outputs, parameters, template and snapshots. */
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
        {loaded.data && !loaded.data.stack.parent && session.can_write && (
          <Link to={["update-stack", name, id]} class="button">
            Update
          </Link>
        )}
        {loaded.data && <Actions of={actionsOf(loaded.data.stack)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ stack, resources }) => (
          <>
            {stack.description && stack.description !== "No description" && <p class="lead">{stack.description}</p>}
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
  const reason = stripLine(stack.stack_status_reason);
  return [
    ["State", <State of={stack.stack_status} />],
    ["Reason", reason.length > LONG ? <span class="long">{reason}</span> : reason],
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
          onClick={() => setQuery({ tab: tab === "Resources" ? "" : tab.toLowerCase(), status: "", sort: "", open: "", all: "" })}
        >
          {tab}
        </button>
      ))}
    </div>
  );
}

function Part({ stack, resources, path, at }: { stack: Stack; resources: Resource[]; path: { stack_name: string; stack_id: string }; at: number }) {
  switch (readTab()) {
    case "Resources":
      return <Resources resources={resources} />;
    case "Graph":
      return <GraphPart path={path} table={<Resources resources={resources} />} />;
    case "Events":
      return <Events path={path} at={at} />;
    case "Outputs":
      return <Outputs stack={stack} />;
    case "Parameters":
      return <Values of={stack.parameters} none="The template has no parameters." />;
    case "Template":
      return <SourcePart names={[path.stack_name, path.stack_id]} />;
    case "Snapshots":
      return <Snapshots path={path} canChange={!stack.parent} />;
  }
}

/** The newest events, read again when the stack was: at the time `at`. */
function Events({ path, at }: { path: Record<string, string>; at: number }) {
  const query = { limit: 500, sort_dir: "desc" as const, nested_depth: 5 };
  const events = useGet("/v1/{project}/stacks/{stack_name}/{stack_id}/events", path, query, 0, at);
  return (
    <Data of={events}>
      {({ events: list }) => <Table label="Events" rows={list} columns={EVENTS} keyOf={(event) => event.id} empty="There are no events." />}
    </Data>
  );
}

function Outputs({ stack }: { stack: Stack }) {
  const outputs = (stack.outputs ?? []).map((output) => [output.output_key, output.output_value]);
  return (
    <Card title="Outputs">
      <Values of={Object.fromEntries(outputs)} none="The template has no outputs." />
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
    const cancel = act("Cancel", "cancel_without_rollback", `The operation (${wordsOf(stack.stack_status)}) stops. Nothing is rolled back.`);
    const rollBack = act("Roll back", "cancel_update", `The update of ${name} stops, and what it has changed is rolled back.`);
    return stack.stack_status === "UPDATE_IN_PROGRESS" ? [rollBack, cancel] : [cancel];
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
