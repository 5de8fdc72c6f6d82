import { get, type Schemas } from "../api/client";
import { splitNames } from "../model/targets";
import { loadAll } from "./data";
import { query } from "./router";

export type Server = Schemas["ShownServer"];

/** Which servers a list contains: the filters of the API. */
export interface ServerFilter {
  selector?: string;
  name?: string[];
  status?: Server["status"][];
  agent_outdated?: boolean;
}

/** Servers of one answer, and names in one URL. */
const PAGE = 1000;
const MOST_NAMES = 50;

/** Reads all servers that a filter selects, by name; with `group`, each with why its policy refuses such a config. */
export async function loadServers(signal: AbortSignal | undefined, filter: ServerFilter, group?: string): Promise<Server[]> {
  const { name: names = [], ...rest } = filter;
  const parts = names.length > 0 ? chunksOf(names) : [[]];
  const found = new Map<string, Server>();
  for (const name of parts) {
    const query = { ...rest, name, group, sort: "name" as const, limit: PAGE };
    const read = async (marker: string | undefined) => (await get("/v1/{project}/servers", {}, { ...query, marker }, signal)).servers;
    for (const server of await loadAll(read, (one) => one.id, PAGE)) found.set(server.id, server);
  }
  return [...found.values()];
}

function chunksOf(names: readonly string[]): string[][] {
  return Array.from({ length: Math.ceil(names.length / MOST_NAMES) }, (_, index) =>
    names.slice(index * MOST_NAMES, (index + 1) * MOST_NAMES),
  );
}

/** The filter that the page's URL names. */
export function readFilter(): ServerFilter {
  const text = query.value.get("name") ?? "";
  const selector = query.value.get("selector") ?? "";
  const names = splitNames(text).map((name) => (/[*?[]/.test(name) ? name : `*${name}*`));
  return {
    ...(selector ? { selector } : {}),
    ...(names.length > 0 ? { name: names } : {}),
    ...(query.value.get("outdated") === "1" ? { agent_outdated: true } : {}),
  };
}

/** The chosen servers in the URL: ids, or "all" for all that match. */
export function readChosen(): "all" | ReadonlySet<string> {
  const text = query.value.get("chosen") ?? "";
  return text === "all" ? "all" : new Set(text.split(",").filter(Boolean));
}
