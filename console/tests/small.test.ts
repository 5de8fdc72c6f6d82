import { expect, test } from "vitest";
import { foldNames } from "../src/model/ranges";
import { EventParser } from "../src/api/sse";
import { toneOf } from "../src/model/state";
import { durationOf, parseTime, relativeOf } from "../src/model/time";

test.each([
  [["web2", "web1", "web0", "web10"], "web[0-2,10]"],
  [["db", "web1"], "web1, db"],
  [["n01", "n02", "n1"], "n[01-02], n1"],
  [["a1.example", "a2.example", "a9.example"], "a[1-2,9].example"],
  [[], ""],
])("names fold to ranges: %j", (names, folded) => {
  expect(foldNames(names)).toBe(folded);
});

test.each([1, 5, 1000])("events do not depend on the pieces in which they arrive (%i)", (size) => {
  const text = 'retry: 1000\n\n: comment\n\nid: 7\nevent: log\ndata: {"a":\ndata: 1}\n\nevent: end\r\ndata: {}\r\n\r\n';
  const parser = new EventParser();
  const events = [];
  for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
  expect(events).toEqual([
    { name: "log", data: '{"a":\n1}', id: "7" },
    { name: "end", data: "{}", id: "7" },
  ]);
});

test("states of stacks look like their ends", () => {
  expect(["CREATE_FAILED", "UPDATE_COMPLETE", "CHECK_IN_PROGRESS", "ONLINE", "new"].map(toneOf)).toEqual(["bad", "good", "busy", "good", "off"]);
});

test("times without a zone are UTC, and are shown relative to now", () => {
  const now = parseTime("2026-11-28T09:10:00");
  expect(now).toBe(Date.UTC(2026, 10, 28, 9, 10));
  expect(relativeOf(now - 200_000, now)).toBe("3 min ago");
  expect(relativeOf(now + 7_300_000, now)).toBe("in 2 h");
  expect(durationOf(300)).toBe("< 1 s");
});
