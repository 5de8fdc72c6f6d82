import { expect, test } from "vitest";
import { drawGraph, type GraphNode, pathTo } from "../src/model/graph";
import { layOut } from "../src/model/layout";

function node(name: string, more: Partial<GraphNode> = {}): GraphNode {
  return {
    id: `${more.stack_id ?? "top"}/${name}`,
    resource_name: name,
    stack_id: "top",
    resource_type: "OS::Heat::SoftwareDeployment",
    resource_status: "CREATE_COMPLETE",
    resource_status_reason: "",
    physical_resource_id: null,
    nested_stack_id: null,
    server_id: null,
    server_name: null,
    start_time: null,
    end_time: null,
    breakpoint: null,
    waits_for: [],
    ...more,
  };
}

const edge = (source: string, target: string) => ({ source: source.includes("/") ? source : `top/${source}`, target: target.includes("/") ? target : `top/${target}` });

/** A graph of servers with two deployments each, between a config and a proxy. */
function lanes(count: number, failed: number) {
  const numbers = Array.from({ length: count }, (_, index) => index);
  const on = (index: number) => ({ server_id: `s${index}`, server_name: `web${index}` });
  return {
    nodes: [
      node("config", { resource_type: "OS::Heat::SoftwareConfig" }),
      node("proxy"),
      ...numbers.flatMap((index) => [
        node(`server${index}`, { resource_type: "OS::Nova::Server", physical_resource_id: `s${index}`, ...on(index) }),
        node(`install${index}`, on(index)),
        node(`start${index}`, { ...on(index), resource_status: index < failed ? "CREATE_FAILED" : "CREATE_COMPLETE" }),
      ]),
    ],
    edges: numbers.flatMap((index) => [
      edge("config", `install${index}`),
      edge(`server${index}`, `install${index}`),
      edge(`install${index}`, `start${index}`),
      edge(`start${index}`, "proxy"),
    ]),
  };
}

test("equal lanes are one box, whose failures are counted", () => {
  const { vertices, requires } = drawGraph(lanes(91, 3), "top", new Set());
  expect([...vertices.keys()].sort()).toEqual(["config", "proxy", "server0 …"]);
  const fold = vertices.get("server0 …")!;
  expect([fold.lanes!.servers, fold.lanes!.deployments]).toEqual([91, 2]);
  expect(Object.fromEntries(fold.lanes!.counts)).toEqual({ COMPLETE: 88, FAILED: 3 });
  expect(requires.get("proxy")).toEqual(["server0 …"]);
  expect(requires.get("server0 …")).toEqual(["config"]);
});

test("a folded box opens, and few or different lanes are not folded", () => {
  expect(drawGraph(lanes(91, 0), "top", new Set(["top/server0"])).vertices.size).toBe(2 + 3 * 91);
  expect(drawGraph(lanes(3, 0), "top", new Set()).vertices.size).toBe(2 + 9);
  const graph = lanes(5, 0);
  graph.edges = graph.edges.filter(({ source, target }) => !(source === "top/start4" && target === "top/proxy"));
  const { vertices } = drawGraph(graph, "top", new Set());
  expect([...vertices.keys()].sort()).toEqual(["config", "install4", "proxy", "server0 …", "server4", "start4"]);
});

test("a nested stack unfolds between what it requires and what requires it", () => {
  const inside = { stack_id: "inner" };
  const graph = {
    nodes: [node("first"), node("nest", { nested_stack_id: "inner" }), node("last"), node("a", inside), node("b", inside)],
    edges: [edge("first", "nest"), edge("nest", "last"), edge("inner/a", "inner/b")],
  };
  const closed = drawGraph(graph, "top", new Set());
  expect([...closed.vertices.keys()]).toEqual(["first", "nest", "last"]);
  expect(closed.vertices.get("nest")!.isOpen).toBe(false);
  const { vertices, requires } = drawGraph(graph, "top", new Set(["top/nest"]));
  expect(vertices.get("nest")!.isOpen).toBe(true);
  expect(Object.fromEntries(requires)).toEqual({ first: [], nest: ["first"], "nest/a": ["nest"], "nest/b": ["nest/a"], last: ["nest/b"] });
  const ranks = layOut(requires).nodes;
  for (const [name, others] of requires) for (const other of others) expect(ranks.get(other)!.rank).toBeLessThan(ranks.get(name)!.rank);
});

test("what is drawn does not depend on states, so that positions stay", () => {
  const [before, after] = [lanes(9, 0), lanes(9, 2)].map((graph) => drawGraph(graph, "top", new Set()).requires);
  expect([...after!]).toEqual([...before!]);
});

test("1,000 resources have a place each", () => {
  const { nodes } = layOut(drawGraph(lanes(333, 0), "top", new Set(["top/server0"])).requires);
  expect(new Set([...nodes.values()].map(({ rank, row }) => `${rank} ${row}`)).size).toBe(1001);
});

test("a node deep inside is shown when what contains it is unfolded", () => {
  const outer = node("outer", { nested_stack_id: "one" });
  const inner = node("inner", { stack_id: "one", nested_stack_id: "two" });
  const leaf = node("leaf", { stack_id: "two" });
  const graph = { nodes: [leaf, inner, outer], edges: [] };
  expect(pathTo(graph, leaf)).toEqual([outer.id, inner.id]);
  expect(pathTo(graph, inner)).toEqual([outer.id, inner.id]);
  expect([...drawGraph(graph, "top", new Set(pathTo(graph, leaf))).vertices.keys()]).toContain("outer/inner/leaf");
});
