import { State, Time } from "../ui/parts";
import { Link } from "../ui/router";
import type { Server } from "../ui/servers";
import type { Column } from "../ui/table";

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
export const DEFAULT_COLUMNS: readonly string[] = ["state", "system", "address", "labels", "agent", "seen"];
export const OPTIONAL_COLUMNS: readonly string[] = Object.keys(COLUMNS);

/** Returns the columns with these names: known ones, or `label:NAME`. The name of the server is always the first. */
export function columnsOf(names: readonly string[]): Column<Server>[] {
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
