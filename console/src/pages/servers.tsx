import { change, get, type Schemas } from "../api/client";
import { wordsOf } from "../model/state";
import { parseTime } from "../model/time";
import { type Action, Actions } from "../ui/actions";
import { loadAll, useData } from "../ui/data";
import { countBy, StateFilter, TextFilter } from "../ui/filters";
import { Data, Empty, Head, State, Time } from "../ui/parts";
import { Link, query } from "../ui/router";
import { type Column, Table } from "../ui/table";

type Server = Schemas["ShownServer"];

const COLUMNS: Column<Server>[] = [
  { title: "Name", cell: (server) => <Link to={["servers", server.id]}>{server.name}</Link>, sort: (server) => server.name },
  { title: "State", cell: (server) => <State of={server.status} />, sort: (server) => wordsOf(server.status) },
  { title: "System", cell: (server) => server.os ?? "", sort: (server) => server.os ?? "", isWide: true },
  { title: "Address", cell: (server) => server.address ?? "", sort: (server) => server.address ?? "", isWide: true },
  { title: "Labels", cell: (server) => <Labels of={server.labels} />, isWide: true },
  {
    title: "Agent",
    cell: (server) => (
      <>
        {server.agent_version ?? ""} {server.agent_outdated && <State of="outdated" tone="warn" />}
      </>
    ),
    sort: (server) => server.agent_version ?? "",
    isWide: true,
  },
  {
    title: "Last seen",
    cell: (server) => <Time at={server.last_seen} />,
    sort: (server) => (server.last_seen ? -parseTime(server.last_seen) : 0),
  },
];

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

/** What a user can do with a server that waits for approval. */
export function approvalsOf(server: Server): Action[] {
  if (server.status !== "PENDING_APPROVAL") return [];
  const names = { server: server.id };
  return [
    {
      label: "Approve",
      question: `${server.name} becomes a server of this project, and may fetch what is deployed on it.`,
      run: () => change("POST", "/v1/{project}/servers/{server}/approve", names, {}),
    },
    {
      label: "Reject",
      question: `${server.name} does not become a server. Its agent has to enroll again.`,
      isDangerous: true,
      run: () => change("POST", "/v1/{project}/servers/{server}/reject", names, {}),
    },
  ];
}

/** Reads all servers that a selector and a name select. */
function loadServers(signal: AbortSignal, selector: string, name: string): Promise<Server[]> {
  const filters = { ...(selector ? { selector } : {}), ...(name ? { name: [name] } : {}), limit: 1000 };
  return loadAll(
    async (marker) => (await get("/v1/{project}/servers", {}, { ...filters, ...(marker ? { marker } : {}) }, signal)).servers,
    (server) => server.id,
    1000,
  );
}

/** The servers of the project. */
export function ServersPage() {
  const selector = query.value.get("selector") ?? "";
  const text = query.value.get("name") ?? "";
  const name = text && !/[*?[]/.test(text) ? `*${text}*` : text;
  const servers = useData(`servers ${selector} ${name}`, (signal) => loadServers(signal, selector, name), ["servers"]);
  const status = query.value.get("status") ?? "";
  const isOutdated = query.value.get("outdated") === "1";
  return (
    <>
      <Head title="Servers" />
      <div class="filters">
        <TextFilter name="name" label="Name" hint="web*" />
        <TextFilter name="selector" label="Selector" hint="tier=web and os.family=debian" />
      </div>
      <Data of={servers}>
        {(all) => {
          const list = isOutdated ? all.filter((server) => server.agent_outdated) : all;
          const shown = status ? list.filter((server) => server.status === status) : list;
          return (
            <>
              <StateFilter counts={countBy(list, (server) => server.status)} />
              {isOutdated && <OutdatedNote />}
              <Table
                label="Servers"
                rows={shown}
                columns={COLUMNS}
                keyOf={(server) => server.id}
                empty={
                  <Empty>
                    {all.length > 0 || selector || name ? (
                      "No server matches these filters."
                    ) : (
                      <>
                        There are no servers yet. <code>stoker server add</code> prints a line that makes a machine one.
                      </>
                    )}
                  </Empty>
                }
              />
              <Waiting servers={shown} reload={servers.reload} />
            </>
          );
        }}
      </Data>
    </>
  );
}

function OutdatedNote() {
  return (
    <p class="quiet">
      Only servers whose agents have another version than this Stoker. <Link to={["servers"]}>Show all</Link>
    </p>
  );
}

function Waiting({ servers, reload }: { servers: readonly Server[]; reload: () => void }) {
  const waiting = servers.filter((server) => server.status === "PENDING_APPROVAL");
  if (waiting.length === 0) return null;
  return (
    <section class="card">
      <h2>Waiting for approval</h2>
      <ul class="rows">
        {waiting.map((server) => (
          <li key={server.id}>
            <span class="row-name">{server.name}</span>
            <span class="row-text">{server.address}</span>
            <Actions of={approvalsOf(server)} onDone={reload} />
          </li>
        ))}
      </ul>
    </section>
  );
}
