import { useEffect, useRef } from "preact/hooks";
import { get } from "../api/client";
import { session } from "../api/session";
import { useData } from "../ui/data";
import { StateFilter, TextFilter } from "../ui/filters";
import { Data, Head } from "../ui/parts";
import { hrefOf, Link, navigate, query, setQuery } from "../ui/router";
import { SelectorField, useFacts } from "../ui/selector";
import { readChosen, readFilter, type Server } from "../ui/servers";
import { type Column, Table } from "../ui/table";
import { columnsOf, DEFAULT_COLUMNS, OPTIONAL_COLUMNS } from "./server_columns";
import { SelectionBar } from "./server_selection";

/** Servers of a page. */
const PAGE = 100;

/** The servers of the project, filtered, sorted and divided into pages by the service. */
export function ServersPage() {
  const filter = readFilter();
  const status = (query.value.get("status") ?? "") as Server["status"] | "";
  const sort = query.value.get("sort") ?? "";
  const after = query.value.get("after") ?? "";
  const shown = query.value.get("columns")?.split(",") ?? DEFAULT_COLUMNS;
  const columns = columnsOf(shown);
  const order = orderOf(sort, columns);
  const all = { ...filter, ...(status ? { status: [status] } : {}) };
  useFirstPage(JSON.stringify([all, order]));
  const loaded = useData(
    JSON.stringify([all, order, after]),
    async (signal) => {
      const page = { ...all, ...(order ? { sort: order } : {}), ...(after ? { marker: after } : {}), limit: PAGE };
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
        {session.can_write && (
          <button class="primary" onClick={() => navigate(hrefOf(["enroll"]))}>
            Enroll servers
          </button>
        )}
      </Head>
      <div class="filters">
        <TextFilter name="name" label="Name" hint="web*" />
        <SelectorField value={filter.selector ?? ""} onChange={(selector) => setQuery({ selector })} />
        <ColumnMenu shown={shown} />
      </div>
      <Data of={loaded}>
        {({ servers, counts }) => {
          const total = status ? (counts.by_status[status] ?? 0) : counts.total;
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
              <Pager servers={servers} total={total} />
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
    if (last.current !== key) setQuery({ after: "", first: "", chosen: "" });
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

function Pager({ servers, total }: { servers: readonly Server[]; total: number }) {
  const first = Number(query.value.get("first") || 1);
  const last = first + servers.length - 1;
  if (servers.length === 0 || (first === 1 && last >= total)) return null;
  return (
    <div class="pager" role="group" aria-label="Pages of the list">
      <span class="quiet">
        {first.toLocaleString("en")}–{last.toLocaleString("en")} of {total.toLocaleString("en")}
      </span>
      {first > 1 && <button onClick={() => open("", "")}>First page</button>}
      {last < total && (
        <button onClick={() => open(servers[servers.length - 1]!.id, `${last + 1}`)}>Next {Math.min(PAGE, total - last)}</button>
      )}
    </div>
  );
}

/** Opens another page of the list, as an entry of the history of its own. */
function open(after: string, first: string): void {
  navigate(hrefOf(["servers"], { ...Object.fromEntries(query.value), after, first }));
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
