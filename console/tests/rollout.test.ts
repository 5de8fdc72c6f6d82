import { expect, test } from "vitest";
import { compareLines, skipEqual } from "../src/model/diff";
import { addSample, canariesOf, rateOf, type Sample } from "../src/model/rollout";

const texts = (seed: number, count: number) => Array.from({ length: count }, (_, index) => `${(seed * (index + 3) * 7919) % 5}`);

test("both texts can be read from a comparison", () => {
  for (let seed = 1; seed < 60; seed++) {
    const [first, second] = [texts(seed, seed % 9), texts(seed * 31, (seed * 3) % 11)];
    const lines = compareLines(first, second);
    expect(lines.filter(({ kind }) => kind !== "added").map(({ text }) => text)).toEqual(first);
    expect(lines.filter(({ kind }) => kind !== "removed").map(({ text }) => text)).toEqual(second);
  }
});

test("a changed line is the only difference", () => {
  const first = Array.from({ length: 40 }, (_, index) => `line ${index}`);
  const second = first.map((text, index) => (index === 20 ? "changed" : text));
  const shown = skipEqual(compareLines(first, second));
  expect(shown.map(({ kind, text }) => `${kind} ${text}`)).toEqual([
    "skipped 18 equal lines",
    "equal line 18",
    "equal line 19",
    "removed line 20",
    "added changed",
    "equal line 21",
    "equal line 22",
    "skipped 17 equal lines",
  ]);
});

test("texts that are too long to compare are different as a whole", () => {
  const first = Array.from({ length: 2000 }, (_, index) => `a${index}`);
  const lines = compareLines(first, first.map((text) => `${text}!`));
  expect(lines.length).toBe(4000);
});

test("the canaries are the first servers, with all their targets", () => {
  const targets = ["a", "b", "a", "c", "d"].map((server_id, position) => ({ server_id, position }));
  expect([...canariesOf(targets, 1)]).toEqual([0]);
  expect([...canariesOf(targets, 2)]).toEqual([0, 1, 2]);
  expect([...canariesOf(targets, "50%")]).toEqual([0, 1, 2]);
  expect([...canariesOf(targets, 4)]).toEqual([]);
  expect([...canariesOf(targets, null)]).toEqual([]);
});

test("the rate is that of the last minute", () => {
  let samples: Sample[] = [];
  expect(rateOf(samples)).toBeNull();
  for (let second = 0; second <= 120; second += 10) samples = addSample(samples, { time: second * 1000, ended: second < 60 ? 0 : second - 60 });
  expect(samples.length).toBe(7);
  expect(rateOf(samples)).toBe(60);
});
