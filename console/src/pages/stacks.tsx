import type { Schemas } from "../api/client";
import { stripLine } from "../model/ansi";
import { countBy } from "../model/groups";
import { ActionLink } from "../ui/actions";
import { useGet } from "../ui/data";
import { StateFilter, TextFilter } from "../ui/filters";
import { Data, Head, State, Time } from "../ui/parts";
import { Link, query } from "../ui/router";
import { type Column, Table } from "../ui/table";

type Stack = Schemas["StackSummary"];

const COLUMNS: Column<Stack>[] = [
  {
    title: "Name",
    cell: (stack) => <Link to={["stacks", stack.stack_name, stack.id]}>{stack.stack_name}</Link>,
    sort: (stack) => stack.stack_name,
  },
  { title: "State", cell: (stack) => <State of={stack.stack_status} />, sort: (stack) => stack.stack_status },
  { title: "Reason", cell: (stack) => stripLine(stack.stack_status_reason), isWide: true },
  { title: "Owner", cell: (stack) => stack.stack_owner ?? "", sort: (stack) => stack.stack_owner ?? "", isWide: true },
  {
    title: "Changed",
    cell: (stack) => <Time at={stack.updated_time ?? stack.creation_time} />,
    sort: (stack) => stack.updated_time ?? stack.creation_time,
  },
];

/** Returns the part of a stack's state by which lists filter: CREATE_FAILED is FAILED. */
export function statusOf(state: string): string {
  return /(IN_PROGRESS|COMPLETE|FAILED)$/.exec(state)?.[0] ?? state;
}

/** The stacks of the project. */
export function StacksPage() {
  const stacks = useGet("/v1/{project}/stacks", {}, {}, ["stacks"]);
  const status = query.value.get("status") ?? "";
  const name = (query.value.get("name") ?? "").toLowerCase();
  return (
    <>
      <Head title="Stacks">
        <ActionLink to={["new-stack"]} class="primary">
          New stack
        </ActionLink>
      </Head>
      <div class="filters">
        <TextFilter name="name" label="Name" hint="part of a name" />
      </div>
      <Data of={stacks}>
        {({ stacks: all }) => {
          const list = all.filter((stack) => stack.stack_name.toLowerCase().includes(name));
          return (
            <>
              <StateFilter counts={countBy(list, (stack) => statusOf(stack.stack_status))} />
              <Table
                label="Stacks"
                rows={status ? list.filter((stack) => statusOf(stack.stack_status) === status) : list}
                columns={COLUMNS}
                keyOf={(stack) => stack.id}
                empty={
                  all.length > 0 ? (
                    "No stack matches these filters."
                  ) : (
                    <>
                      There are no stacks yet. <Link to={["new-stack"]}>Create one</Link> from a template.
                    </>
                  )
                }
              />
            </>
          );
        }}
      </Data>
    </>
  );
}
