import { change, type Schemas } from "../api/client";
import { session } from "../api/session";
import { Actions } from "../ui/actions";
import { useGet } from "../ui/data";
import { Form, textOf, TextField } from "../ui/form";
import { Data, State, Time } from "../ui/parts";
import { type Column, Table } from "../ui/table";

type Snapshot = Schemas["StackSnapshot"];

const SNAPSHOTS = "/v1/{project}/stacks/{stack_name}/{stack_id}/snapshots";
const SNAPSHOT = `${SNAPSHOTS}/{snapshot_id}` as const;

/** The snapshots of a stack: take one, return to one, delete one. */
export function Snapshots({ path, canChange }: { path: { stack_name: string; stack_id: string }; canChange: boolean }) {
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
