import type { Schemas } from "../api/client";
import { append, countBy, groupBy } from "./groups";
import type { Requirements } from "./layout";

export type GraphNode = Schemas["GraphNode"];

/** What the graph of a stack shows as one box: a resource, or equal lanes of several servers. */
export interface Vertex {
  key: string;
  /** The resource; of lanes, the first one of the first lane. Its id opens and closes the vertex. */
  node: GraphNode;
  /** What is folded here; null for a resource. */
  lanes: Lanes | null;
  /** Whether it can show what is inside, and whether it does. */
  isOpen: boolean | null;
}

interface Lanes {
  servers: number;
  /** Resources of each lane but the server. */
  deployments: number;
  /** The number of lanes by the state that says most: FAILED before IN_PROGRESS before the others. */
  counts: Map<string, number>;
}

export interface Drawing {
  vertices: ReadonlyMap<string, Vertex>;
  requires: Requirements;
}

/** Returns the ids of the resources to unfold so that a graph shows a node, and what is inside it. */
export function pathTo({ nodes }: Schemas["StackGraph"], node: GraphNode): string[] {
  const path: string[] = [];
  for (let next: GraphNode | undefined = node; next; ) {
    if (next.nested_stack_id !== null) path.unshift(next.id);
    const { stack_id }: GraphNode = next;
    next = nodes.find((one) => one.nested_stack_id === stack_id);
  }
  return path;
}

/** Equal lanes from which on they are folded. */
const LEAST = 4;

/**
 * Returns the boxes of a stack's graph. A nested stack whose resource's id is in `open` is unfolded: its resources follow
 * that resource, and precede what depends on it. Lanes, the resources on one server, are folded if several are equal in
 * types and dependencies, unless the id of the first resource is in `open`.
 */
export function drawGraph(graph: Schemas["StackGraph"], stackId: string, open: ReadonlySet<string>): Drawing {
  return foldLanes(unfold(graph, stackId, open), open);
}

function unfold(graph: Schemas["StackGraph"], stackId: string, open: ReadonlySet<string>): Drawing {
  const inside = groupBy(graph.nodes, (node) => node.stack_id);
  const before = new Map<string, string[]>();
  const after = new Map<string, string[]>();
  for (const { source, target } of graph.edges) {
    append(before, target, source);
    append(after, source, target);
  }
  const childrenOf = (node: GraphNode) => (open.has(node.id) && node.nested_stack_id ? (inside.get(node.nested_stack_id) ?? []) : []);
  const byId = new Map(graph.nodes.map((node) => [node.id, node]));
  /** What must have ended when a node has: of an unfolded one, the last ones inside. */
  const endsOf = (node: GraphNode): string[] => {
    const children = childrenOf(node);
    return children.length > 0 ? children.filter((child) => !after.has(child.id)).flatMap(endsOf) : [node.id];
  };
  const keys = new Map<string, string>();
  const vertices = new Map<string, Vertex>();
  const needs: [string, string[]][] = [];
  const add = (nodes: readonly GraphNode[], path: string, parent: string | null) => {
    for (const node of nodes) {
      const key = path + node.resource_name;
      // Of two resources with one name, of which one is being replaced, the second has its id in the key.
      const unique = vertices.has(key) ? `${key} ${node.id}` : key;
      keys.set(node.id, unique);
      const isNested = node.nested_stack_id !== null;
      vertices.set(unique, { key: unique, node, lanes: null, isOpen: isNested ? open.has(node.id) : null });
      const sources = before.get(node.id);
      needs.push([unique, sources ? sources.flatMap((id) => endsOf(byId.get(id)!)) : parent ? [parent] : []]);
      add(childrenOf(node), `${key}/`, node.id);
    }
  };
  add(inside.get(stackId) ?? [], "", null);
  return { vertices, requires: new Map(needs.map(([key, ids]) => [key, ids.flatMap((id) => keys.get(id) ?? [])])) };
}

function foldLanes({ vertices, requires }: Drawing, open: ReadonlySet<string>): Drawing {
  const lanes = new Map<string, Vertex[]>();
  for (const vertex of vertices.values()) if (vertex.node.server_id) append(lanes, vertex.node.server_id, vertex);
  const laneOf = (key: string) => vertices.get(key)!.node.server_id;
  const users = new Map<string, string[]>();
  for (const [key, names] of requires) if (!laneOf(key)) for (const name of names) append(users, name, key);
  const shapes = new Map<string, string>();
  const shapeOf = (key: string): string => {
    const known = shapes.get(key);
    if (known !== undefined) return known;
    shapes.set(key, ""); // ends a cycle
    const lane = laneOf(key);
    const needs = (requires.get(key) ?? []).map((other) =>
      laneOf(other) === lane ? shapeOf(other) : laneOf(other) ? `lane ${vertices.get(other)!.node.resource_type}` : `"${other}"`,
    );
    const shape = `${vertices.get(key)!.node.resource_type}(${needs.sort().join()})${(users.get(key) ?? []).sort().join()}`;
    shapes.set(key, shape);
    return shape;
  };
  const groups = new Map<string, Vertex[][]>();
  for (const lane of lanes.values()) append(groups, lane.map(({ key }) => shapeOf(key)).sort().join(), lane);
  const folds = new Map<string, Vertex>();
  for (const group of groups.values()) {
    const first = group[0]![0]!;
    if (group.length < LEAST || group[0]!.some((vertex) => vertex.isOpen) || open.has(first.node.id)) continue;
    const key = `${first.key} …`;
    const fold: Vertex = { key, node: first.node, lanes: countLanes(group), isOpen: false };
    for (const vertex of group.flat()) folds.set(vertex.key, fold);
  }
  const shown = new Map<string, Vertex>();
  const needs = new Map<string, Set<string>>();
  for (const [key, vertex] of vertices) {
    const box = folds.get(key) ?? vertex;
    shown.set(box.key, box);
    const names = needs.get(box.key) ?? new Set<string>();
    for (const name of requires.get(key) ?? []) names.add(folds.get(name)?.key ?? name);
    names.delete(box.key);
    needs.set(box.key, names);
  }
  return { vertices: shown, requires: new Map([...needs].map(([key, names]) => [key, [...names]])) };
}

function countLanes(group: readonly (readonly Vertex[])[]): Lanes {
  const counts = countBy(group, (lane) => {
    const states = lane.map(({ node }) => node.resource_status);
    const state = ["FAILED", "IN_PROGRESS"].find((end) => states.some((status) => status.endsWith(end)));
    return state ?? (states.every((status) => status.endsWith("COMPLETE") && !status.startsWith("INIT")) ? "COMPLETE" : "QUEUED");
  });
  const isServer = ({ node }: Vertex) => node.physical_resource_id === node.server_id;
  return { servers: group.length, deployments: group[0]!.filter((vertex) => !isServer(vertex)).length, counts };
}
