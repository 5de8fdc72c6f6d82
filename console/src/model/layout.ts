import { append } from "./groups";

/** A place in the layout: a column, and a row in it, which may be a fraction. */
export interface Place {
  rank: number;
  row: number;
}

/** An edge from a node to one that depends on it, with its places between other nodes on the way. */
export interface Edge {
  from: string;
  to: string;
  through: Place[];
}

export interface Layout {
  nodes: Map<string, Place>;
  edges: Edge[];
  ranks: number;
  rows: number;
}

/** The names that each node depends on. */
export type Requirements = ReadonlyMap<string, readonly string[]>;

/** Sweeps that reduce crossings. */
const SWEEPS = 8;

/**
 * Places the nodes of a directed graph in columns: each node right of all that it depends on.
 *
 * Unknown names and cycles in `requires` are ignored. `previous` is an earlier layout, whose order decides between equal
 * places, so that nodes stay where they are. The same input has the same result.
 */
export function layOut(requires: Requirements, previous?: Layout): Layout {
  const names = [...requires.keys()].sort((one, other) => compare(one, other, previous));
  const ranks = rankAll(names, requires);
  const chains = chainsOf(names, requires, ranks);
  const columns: string[][] = [];
  for (const name of names) (columns[ranks.get(name)!] ??= []).push(name);
  // An edge over several columns takes a place in each of them, so that no node hides it.
  for (const chain of chains) {
    chain.slice(1, -1).forEach((name, index) => columns[ranks.get(chain[0]!)! + index + 1]!.push(name));
  }
  const rows = reduceCrossings(columns, chains);
  const tallest = Math.max(0, ...columns.map((column) => column.length));
  const places = new Map<string, Place>();
  columns.forEach((column, rank) => {
    for (const name of column) places.set(name, { rank, row: rows.get(name)! + (tallest - column.length) / 2 });
  });
  return {
    nodes: new Map(names.map((name) => [name, places.get(name)!])),
    edges: chains.map((chain) => ({
      from: chain[0]!,
      to: chain[chain.length - 1]!,
      through: chain.slice(1, -1).map((name) => places.get(name)!),
    })),
    ranks: columns.length,
    rows: tallest,
  };
}

function compare(one: string, other: string, previous?: Layout): number {
  const first = previous?.nodes.get(one)?.row ?? Infinity;
  const second = previous?.nodes.get(other)?.row ?? Infinity;
  if (first !== second) return first < second ? -1 : 1;
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Returns the column of each node, without recursion: a chain may be long. */
function rankAll(names: readonly string[], requires: Requirements): Map<string, number> {
  const ranks = new Map<string, number>();
  const open = new Set<string>();
  for (const start of names) {
    const stack = [start];
    while (stack.length > 0) {
      const name = stack[stack.length - 1]!;
      const others = (requires.get(name) ?? []).filter((other) => requires.has(other) && other !== name);
      const waiting = ranks.has(name) || open.has(name) ? [] : others.filter((other) => !ranks.has(other) && !open.has(other));
      if (waiting.length > 0) {
        open.add(name);
        stack.push(...waiting);
        continue;
      }
      if (!ranks.has(name)) ranks.set(name, 1 + Math.max(-1, ...others.map((other) => ranks.get(other) ?? -1)));
      open.delete(name);
      stack.pop();
    }
  }
  moveSources(names, requires, ranks);
  return ranks;
}

/** Moves nodes that depend on nothing next to the first node that depends on them, which keeps edges short. */
function moveSources(names: readonly string[], requires: Requirements, ranks: Map<string, number>): void {
  const nearest = new Map<string, number>();
  for (const name of names) {
    for (const other of requires.get(name) ?? []) {
      nearest.set(other, Math.min(nearest.get(other) ?? Infinity, ranks.get(name)!));
    }
  }
  for (const name of names) {
    const next = nearest.get(name);
    if (ranks.get(name) === 0 && next !== undefined && next > 0) ranks.set(name, next - 1);
  }
}

/** Returns each edge as a chain of names, one a column; those between its ends are places without a node. */
function chainsOf(names: readonly string[], requires: Requirements, ranks: ReadonlyMap<string, number>): string[][] {
  const chains: string[][] = [];
  for (const to of names) {
    for (const from of new Set(requires.get(to))) {
      const [first, last] = [ranks.get(from), ranks.get(to)!];
      if (first === undefined || first >= last) continue; // an unknown name, or an edge of a cycle
      const between = Array.from({ length: last - first - 1 }, (_, index) => `${from}\0${to}\0${index}`);
      chains.push([from, ...between, to]);
    }
  }
  return chains;
}

/** Sorts the columns so that few edges cross, and returns the row of each name. */
function reduceCrossings(columns: string[][], chains: readonly string[][]): Map<string, number> {
  const before = new Map<string, string[]>();
  const after = new Map<string, string[]>();
  for (const chain of chains) {
    for (let index = 1; index < chain.length; index++) {
      append(before, chain[index]!, chain[index - 1]!);
      append(after, chain[index - 1]!, chain[index]!);
    }
  }
  const rows = new Map<string, number>();
  for (const column of columns) column.forEach((name, row) => rows.set(name, row));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isForward = sweep % 2 === 0;
    const order = isForward ? columns : [...columns].reverse();
    for (const column of order) sortColumn(column, isForward ? before : after, rows);
  }
  return rows;
}

/** Sorts a column by the middle of the neighbors' rows; names without neighbors keep their place. */
function sortColumn(column: string[], edges: ReadonlyMap<string, readonly string[]>, rows: Map<string, number>): void {
  const middle = new Map(
    column.map((name, index) => {
      const others = edges.get(name) ?? [];
      const sum = others.reduce((total, other) => total + rows.get(other)!, 0);
      return [name, others.length > 0 ? sum / others.length : index];
    }),
  );
  column.sort((one, other) => middle.get(one)! - middle.get(other)! || rows.get(one)! - rows.get(other)!);
  column.forEach((name, row) => rows.set(name, row));
}
