import { expect, test } from "vitest";
import { layOut, type Requirements } from "../src/model/layout";

/** Returns a graph whose edges go to earlier nodes, from a seed. */
function randomGraph(seed: number, size: number): Map<string, string[]> {
  let state = seed;
  const next = (limit: number) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return state % limit;
  };
  const requires = new Map<string, string[]>();
  for (let index = 0; index < size; index++) {
    const count = index === 0 ? 0 : next(4);
    requires.set(`n${index}`, Array.from({ length: count }, () => `n${next(index)}`));
  }
  return requires;
}

function checkPlaces(requires: Requirements): void {
  const layout = layOut(requires);
  expect(layout.nodes.size).toBe(requires.size);
  for (const [name, others] of requires) {
    for (const other of others) expect(layout.nodes.get(name)!.rank).toBeGreaterThan(layout.nodes.get(other)!.rank);
  }
  const places = [...layout.nodes.values(), ...layout.edges.flatMap((edge) => edge.through)];
  const taken = new Set(places.map((place) => `${place.rank}/${place.row}`));
  expect(taken.size).toBe(places.length);
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))("nodes are right of what they depend on, and none overlap (%i)", (seed) => {
  checkPlaces(randomGraph(seed, 5 + seed * 4));
});

test("the same graph has the same layout, and a changed one keeps the order", () => {
  const graph = randomGraph(7, 60);
  const layout = layOut(graph);
  expect(layOut(graph)).toEqual(layout);
  expect(layOut(graph, layout).nodes.size).toBe(60);
});

test("a cycle and an unknown name are ignored", () => {
  const layout = layOut(new Map([["a", ["b", "unknown"]], ["b", ["a"]], ["c", ["c"]]]));
  expect([...layout.nodes.keys()].sort()).toEqual(["a", "b", "c"]);
});

test("a chain of many nodes is laid out", () => {
  const chain = new Map(Array.from({ length: 5000 }, (_, index) => [`${index}`, index === 0 ? [] : [`${index - 1}`]]));
  expect(layOut(chain).ranks).toBe(5000);
});

test("a source is next to the first node that depends on it", () => {
  const layout = layOut(new Map([["a", []], ["b", ["a"]], ["c", ["b", "late"]], ["late", []]]));
  expect(layout.nodes.get("late")!.rank).toBe(1);
});
