import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import { session } from "../api/session";
import { ActionLink } from "../ui/actions";
import { useData } from "../ui/data";
import { Pages, StateFilter, TextFilter } from "../ui/filters";
import { Data, Head, State, Time } from "../ui/parts";
import { Link, query, readQuery, setQuery } from "../ui/router";
import { SelectorField, useFacts } from "../ui/selector";
import { readChosen, readFilter, type Server } from "../ui/servers";
import { type Column, Table } from "../ui/table";
import { SelectionBar } from "./server_selection";

/** Servers of a page. */
const PAGE = 100;

/** The servers of the project, filtered, sorted and divided into pages by the service. */
export function ServersPage() {
  const filter = readFilter();
  const { sort, marker, ...parameters } = readQuery("status", "sort", "marker");
  const status = parameters.status as Server["status"] | "";
  const shown = query.value.get("columns")?.split(",") ?? DEFAULT_COLUMNS;
  const columns = columnsOf(shown);
  const order = orderOf(sort, columns);
  const all = { ...filter, ...(status ? { status: [status] } : {}) };
  useFirstPage(JSON.stringify([all, order]));
  const loaded = useData(
    JSON.stringify([all, order, marker]),
    async (signal) => {
      const page = { ...all, sort: order, marker, limit: PAGE };
      const [listed, counted] = await Promise.all([
        get("/v1/{project}/servers", {}, page, signal),
        get("/v1/{project}/server_counts", {}, filter, signal),
      ]);
      return { servers: listed.servers, counts: counted.server_counts };
    },
    ["servers"],
  );
  const hasFilter = Object.keys(all).length > 0;
  return (
    <>
      <Head title="Servers">
        <ActionLink to={["enroll"]} class="primary">
          Enroll servers
        </ActionLink>
      </Head>
      <div class="filters">
        <TextFilter name="name" label="Name" hint="web*" />
        <SelectorField value={filter.selector ?? ""} onChange={(selector) => setQuery({ selector })} />
        <ColumnMenu shown={shown} />
      </div>
      <Data of={loaded}>
        {({ servers, counts }) => {
          const total = status ? (counts.by_status[status] ?? 0) : counts.total;
          const first = Number(query.value.get("first") || 1);
          const last = first + servers.length - 1;
          return (
            <>
              <StateFilter counts={new Map(Object.entries(counts.by_status))} />
              {filter.agent_outdated && (
                <p class="quiet">
                  Only servers whose agents have another version than this Stoker. <Link to={["servers"]}>Show all</Link>
                </p>
              )}
              <SelectionBar servers={servers} filter={all} total={total} onDone={loaded.reload} />
              <Table
                label="Servers"
                isSorted
                rows={servers}
                columns={session.can_write ? [CHOICE, ...columns] : columns}
                keyOf={(server) => server.id}
                empty={<Nothing hasFilter={hasFilter} />}
              />
              <Pages next={last < total ? (servers.at(-1)?.id ?? "") : ""} labels={["First page", "Next page"]} range={{ first, last, total }} />
            </>
          );
        }}
      </Data>
    </>
  );
}

/** Returns to the first page, with nothing chosen, when the list changes. */
function useFirstPage(key: string): void {
  const last = useRef(key);
  useEffect(() => {
    if (last.current !== key) setQuery({ marker: "", first: "", chosen: "" });
    last.current = key;
  }, [key]);
}

const CHOICE: Column<Server> = { title: "Select", cell: (server) => <Choice server={server} /> };

function Choice({ server }: { server: Server }) {
  const chosen = readChosen();
  const change = () => {
    const next = new Set(chosen === "all" ? [] : chosen);
    if (!next.delete(server.id)) next.add(server.id);
    setQuery({ chosen: [...next].join(",") });
  };
  const isChosen = chosen === "all" || chosen.has(server.id);
  return <input type="checkbox" aria-label={`Select ${server.name}`} checked={isChosen} onChange={change} />;
}

type Order = NonNullable<Parameters<typeof get<"/v1/{project}/servers">>[2]>["sort"];

/** Returns the API's name of an order of the table. */
function orderOf(sort: string, columns: readonly Column<Server>[]): Order | undefined {
  const title = sort.replace(/^-/, "");
  const key = columns.find((column) => column.title === title)?.sort ? ORDERS[title] : undefined;
  if (!key) return "name";
  // The newest time comes first where the arrow points up, as with ages.
  const isDown = sort.startsWith("-") !== (key === "last_seen");
  return (isDown ? `-${key}` : key) as Order;
}

const ORDERS: Record<string, string> = { Name: "name", State: "status", Agent: "agent_version", "Last seen": "last_seen" };

function ColumnMenu({ shown }: { shown: readonly string[] }) {
  const labels = useFacts().filter((fact) => fact.is_label);
  const names = [...OPTIONAL_COLUMNS, ...labels.map((fact) => `label:${fact.name.replace(/^label\./, "")}`)];
  const change = (name: string) => {
    const next = shown.includes(name) ? shown.filter((one) => one !== name) : [...shown, name];
    setQuery({ columns: next.join() === DEFAULT_COLUMNS.join() ? "" : next.join(",") });
  };
  return (
    <details class="menu">
      <summary>Columns</summary>
      <div class="menu-body choices">
        {names.map((name) => (
          <label key={name}>
            <input type="checkbox" checked={shown.includes(name)} onChange={() => change(name)} /> {name}
          </label>
        ))}
      </div>
    </details>
  );
}

function Nothing({ hasFilter }: { hasFilter: boolean }) {
  if (hasFilter) return <>No server matches these filters.</>;
  if (!session.can_write) return <>There are no servers yet.</>;
  return (
    <>
      There are no servers yet. <Link to={["enroll"]}>Enroll the first one</Link>: you get a line to paste on the machine.
    </>
  );
}

const NAME: Column<Server> = { title: "Name", cell: (server) => <Link to={["servers", server.id]}>{server.name}</Link>, sort: (server) => server.name };

const COLUMNS: Record<string, Column<Server>> = {
  state: { title: "State", cell: (server) => <State of={server.status} />, sort: (server) => server.status },
  system: { title: "System", cell: (server) => server.os ?? "", isWide: true },
  address: { title: "Address", cell: (server) => server.address ?? "", isWide: true },
  labels: { title: "Labels", cell: (server) => <Labels of={server.labels} />, isWide: true },
  agent: {
    title: "Agent",
    cell: (server) => (
      <>
        {server.agent_version ?? ""} {server.agent_outdated && <State of="outdated" tone="warn" />}
      </>
    ),
    sort: (server) => server.agent_version ?? "",
    isWide: true,
  },
  seen: { title: "Last seen", cell: (server) => <Time at={server.last_seen} />, sort: (server) => server.last_seen ?? "", isWide: true },
  kind: { title: "Kind", cell: (server) => server.kind, isWide: true },
  host: { title: "Host name", cell: (server) => server.hostname ?? "", isWide: true },
  problem: { title: "Problem", cell: (server) => server.problem ?? "" },
  hooks: { title: "Hooks", cell: (server) => server.hooks.join(", "), isWide: true },
  created: { title: "Created", cell: (server) => <Time at={server.created_at} />, isWide: true },
};

/** The columns of a list whose URL names none, and those that can be chosen. */
const DEFAULT_COLUMNS: readonly string[] = ["state", "system", "address", "labels", "agent", "seen"];
const OPTIONAL_COLUMNS: readonly string[] = Object.keys(COLUMNS);

/** Returns the columns with these names: known ones, or `label:NAME`. The name of the server is always the first. */
function columnsOf(names: readonly string[]): Column<Server>[] {
  const chosen = names.flatMap((name): Column<Server>[] => {
    if (name.startsWith("label:")) {
      const label = name.slice("label:".length);
      return [{ title: label, cell: (server) => server.labels[label] ?? "" }];
    }
    return COLUMNS[name] ? [COLUMNS[name]] : [];
  });
  return [NAME, ...chosen];
}

export function Labels({ of: labels }: { of: Record<string, string> }) {
  return (
    <span class="labels">
      {Object.entries(labels).map(([name, value]) => (
        <span key={name} class="label">
          {name}={value}
        </span>
      ))}
    </span>
  );
}
