import { change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { stripLine } from "../model/ansi";
import { wordsOf } from "../model/state";
import { type Action, ActionLink, Actions } from "../ui/actions";
import { useData, useGet } from "../ui/data";
import { Form, TextField, textOf } from "../ui/form";
import { Pills } from "../ui/filters";
import { lazy } from "../ui/lazy";
import { Card, Data, Facts, Head, State, Time, Values } from "../ui/parts";
import { query } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { GraphPart, type Resource, Resources } from "./stack_resources";

type Stack = Schemas["StackDetail"];
type Event = Schemas["StackEvent"];

/** The parts of the page; the parameter `tab` names them. */
const TABS = ["Resources", "Graph", "Events", "Outputs", "Parameters", "Template", "Snapshots"].map((text, index) => {
  return { value: index === 0 ? "" : text.toLowerCase(), text };
});
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
        {loaded.data && !loaded.data.stack.parent && <ActionLink to={["update-stack", name, id]}>Update</ActionLink>}
        {loaded.data && <Actions of={actionsOf(loaded.data.stack)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {({ stack, resources }) => (
          <>
            {stack.description && stack.description !== "No description" && <p class="lead">{stack.description}</p>}
            <Facts of={factsOf(stack)} />
            <Pills name="tab" label="Parts of the stack" clears={["status", "sort", "open", "all"]} of={TABS} areTabs />
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

function Part({ stack, resources, path, at }: { stack: Stack; resources: Resource[]; path: { stack_name: string; stack_id: string }; at: number }) {
  switch (query.value.get("tab")) {
    case "graph":
      return <GraphPart path={path} table={<Resources resources={resources} />} />;
    case "events":
      return <Events path={path} at={at} />;
    case "outputs":
      return <Outputs stack={stack} />;
    case "parameters":
      return <Values of={stack.parameters} none="The template has no parameters." />;
    case "template":
      return <SourcePart names={[path.stack_name, path.stack_id]} />;
    case "snapshots":
      return <Snapshots path={path} canChange={!stack.parent} />;
    default:
      return <Resources resources={resources} />;
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

type Snapshot = Schemas["StackSnapshot"];

const SNAPSHOTS = "/v1/{project}/stacks/{stack_name}/{stack_id}/snapshots";
const SNAPSHOT = `${SNAPSHOTS}/{snapshot_id}` as const;

/** The snapshots of a stack: take one, return to one, delete one. */
function Snapshots({ path, canChange }: { path: { stack_name: string; stack_id: string }; canChange: boolean }) {
  const loaded = useGet(SNAPSHOTS, path);
  const take = async (values: FormData, form: HTMLFormElement) => {
    await change("POST", SNAPSHOTS, path, { name: textOf(values, "name") ?? null });
    form.reset();
    loaded.reload();
  };
  const columns: Column<Snapshot>[] = [
    { title: "Snapshot", cell: (snapshot) => snapshot.name ?? snapshot.id },
    { title: "State", cell: (snapshot) => <State of={snapshot.status} /> },
    { title: "Reason", cell: (snapshot) => snapshot.status_reason, isWide: true },
    { title: "Taken", cell: (snapshot) => <Time at={snapshot.creation_time} /> },
    { title: "Change", cell: (snapshot) => canChange && <SnapshotActions snapshot={snapshot} path={path} onDone={loaded.reload} /> },
  ];
  return (
    <>
      {canChange && session.can_write && (
        <Form class="filters" label="Take a snapshot" submit={take}>
          <TextField name="name" label="Name of a snapshot" />
        </Form>
      )}
      <Data of={loaded}>
        {({ snapshots }) => <Table label="Snapshots" rows={snapshots} columns={columns} keyOf={(snapshot) => snapshot.id} empty="There are no snapshots." />}
      </Data>
    </>
  );
}

function SnapshotActions({ snapshot, path, onDone }: { snapshot: Snapshot; path: Record<string, string>; onDone: () => void }) {
  const names = { ...path, snapshot_id: snapshot.id };
  const title = snapshot.name ?? snapshot.id;
  const restore = {
    label: "Restore",
    question: `The stack is updated to the template and the parameters that it had when ${title} was taken.`,
    run: () => change("POST", `${SNAPSHOT}/restore`, names, {}),
  };
  const remove = { label: "Delete", question: `The snapshot ${title} is deleted.`, isDangerous: true, run: () => change("DELETE", SNAPSHOT, names) };
  return (
    <div class="actions">
      <Actions of={snapshot.status === "COMPLETE" ? [restore, remove] : [remove]} onDone={onDone} />
    </div>
  );
}
