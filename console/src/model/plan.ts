import { compareLines, type DiffLine, skipEqual } from "./diff";
import { groupBy } from "./groups";
import { foldNames } from "./ranges";
import type { Tone } from "./state";
import { toYaml } from "./yaml";

/** What a plan does with a resource: word, symbol and look, the most dangerous first. */
export const KINDS = [
  { kind: "replaced", symbol: "±", tone: "bad" },
  { kind: "deleted", symbol: "−", tone: "bad" },
  { kind: "updated", symbol: "~", tone: "warn" },
  { kind: "added", symbol: "+", tone: "good" },
  { kind: "unchanged", symbol: "=", tone: "off" },
] as const satisfies readonly { kind: string; symbol: string; tone: Tone }[];
export type Kind = (typeof KINDS)[number]["kind"];

/** A planned change, as the API's previews show it. */
export interface PlannedChange {
  resource_name: string;
  resource_type: string;
  stack_name: string;
  resource_status: string;
  properties: Record<string, unknown>;
  changed_properties?: string[];
  previous_properties?: Record<string, unknown>;
}

export interface PlannedRun {
  resource_name: string;
  action: string;
  mode: string | null;
  server_id: string | null;
  server_name: string | null;
}

/** Returns the resources of the preview of a new stack, those of nested stacks, which are lists in it, included. */
export function flatten(resources: readonly unknown[]): PlannedChange[] {
  return resources.flatMap((item) => (Array.isArray(item) ? flatten(item) : [item as PlannedChange]));
}

/** Returns the differences of a change's properties by name; a value that is not known yet has none. */
export function differencesOf(change: PlannedChange): { name: string; lines: DiffLine[] }[] {
  const text = (value: unknown) => (typeof value === "string" ? value : toYaml(value)).replace(/\n$/, "");
  // A part that depends on results of the update is null.
  const textAfter = (value: unknown) => text(value).replace(/(^|[:-] )null$/gm, "$1(known after the update)");
  return (change.changed_properties ?? []).map((name) => {
    const [before, after] = [change.previous_properties?.[name], change.properties[name]];
    if (after === undefined || after === null) return { name, lines: [] };
    if (before === undefined || before === null) return { name, lines: textAfter(after).split("\n").filter(Boolean).map((line): DiffLine => ({ kind: "added", text: line })) };
    return { name, lines: skipEqual(compareLines(text(before).split("\n"), textAfter(after).split("\n"))) };
  });
}

/** Returns the planned runs in their order, with the servers of equal ones in a row as ranges. */
export function foldRuns(runs: readonly PlannedRun[]): { key: string; text: string; servers: string; count: number }[] {
  const folded: { key: string; text: string; names: string[] }[] = [];
  for (const run of runs) {
    const text = `${run.mode === null ? run.action : "undo"} of ${run.resource_name.replace(/\/\d+(?=\/|$)/g, "/…")}`;
    const name = run.server_name ?? run.server_id ?? "a new server";
    const last = folded[folded.length - 1];
    if (last?.text === text) last.names.push(name);
    else folded.push({ key: `${folded.length} ${text}`, text, names: [name] });
  }
  return folded.map(({ key, text, names }) => ({ key, text, servers: foldNames(names), count: names.length }));
}

/** What a preview on a server found. */
export interface ServerResult {
  server: string;
  /** In words: would change 2 items. */
  summary: string;
  changes: readonly { item: string; outcome: string; diff?: string | null }[];
}

/** Folds equal results of several servers into one, the largest groups first. */
export function foldResults(results: readonly ServerResult[]): (Omit<ServerResult, "server"> & { servers: string[] })[] {
  const groups = groupBy(results, ({ summary, changes }) => JSON.stringify([summary, changes]));
  const folded = [...groups.values()].map((group) => ({ ...group[0]!, servers: group.map(({ server }) => server) }));
  return folded.sort((one, other) => other.servers.length - one.servers.length);
}
