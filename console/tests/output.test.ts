import { expect, test } from "vitest";
import { parseLine, plainStyle, stripLine } from "../src/model/ansi";
import { LineStore, parseRange, patternOf, rangeOf, Rows, Search, visible } from "../src/model/lines";

function chunk(data: string, offset: number, stream = "stdout") {
  return { stream, offset, size: new TextEncoder().encode(data).length, data, time: "2026-11-28T09:00:00Z" };
}

/** Returns the lines of an output that arrives in pieces of `size` characters. */
function linesOf(text: string, size: number): string[] {
  const store = new LineStore();
  for (let at = 0; at < text.length; at += size) store.add(chunk(text.slice(at, at + size), at));
  return store.lines.map((line) => line.text);
}

test.each([1, 2, 3, 7, 100])("lines do not depend on the pieces in which they arrive (%i)", (size) => {
  const text = "one\n\ntwo \x1b[31mred\nlast without an end";
  expect(linesOf(text, size)).toEqual(["one", "", "two \x1b[31mred", "last without an end"]);
});

test("streams that alternate keep their own lines", () => {
  const store = new LineStore();
  store.add(chunk("out begins", 0));
  store.add(chunk("err\n", 0, "stderr"));
  store.add(chunk(" and ends\n", 10));
  expect(store.lines.map((line) => [line.stream, line.text])).toEqual([
    ["stdout", "out begins and ends"],
    ["stderr", "err"],
  ]);
});

test("a chunk that comes twice counts once, and a missing one is a gap", () => {
  const store = new LineStore();
  store.add(chunk("a\n", 0));
  store.add(chunk("a\n", 0));
  store.add(chunk("b\n", 1002));
  expect(store.lines.map((line) => line.gap || line.text)).toEqual(["a", 1000, "b"]);
});

test("colors last until they are reset, over many lines", () => {
  const store = new LineStore();
  store.add(chunk(`\x1b[1;32mgreen\n${"more\n".repeat(1200)}\x1b[0mplain\n`, 0));
  expect(store.spans(0)).toEqual([{ text: "green", style: "fg-green bold" }]);
  expect(store.spans(1200)).toEqual([{ text: "more", style: "fg-green bold" }]);
  expect(store.spans(1201)).toEqual([{ text: "plain", style: "" }]);
});

test("a line that grows changes the color of those after it", () => {
  const store = new LineStore();
  store.add(chunk("begin", 0));
  store.add(chunk("error\n", 0, "stderr"));
  expect(store.spans(1)).toEqual([{ text: "error", style: "" }]);
});

test("sequences other than colors are dropped, and control characters are visible", () => {
  expect(parseLine("\x1b]0;title\x07a\x1b[2Kb\x1b[?25lc\x00\x07", plainStyle())).toEqual([{ text: "abc␀␇", style: "" }]);
  expect(stripLine("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\")).toBe("link");
  expect(parseLine("<script>alert(1)</script>", plainStyle())[0]!.text).toBe("<script>alert(1)</script>");
});

test.each([
  ["\x1b[38;5;196mx", "fg-red"],
  ["\x1b[38;2;0;200;0mx", "fg-green"],
  ["\x1b[48;5;21mx", "bg-blue"],
  ["\x1b[91;4mx", "fg-red underlined"],
  ["\x1b[31m\x1b[39mx", ""],
])("%j", (text, style) => {
  expect(parseLine(text, plainStyle())).toEqual([{ text: "x", style }]);
});

test("a carriage return begins a line again", () => {
  expect(visible("10 %\r50 %\r100 %")).toBe("100 %");
  expect(visible("windows\r")).toBe("windows");
});

test("a line of a megabyte is cut", () => {
  const store = new LineStore();
  store.add(chunk("x".repeat(1_000_000), 0));
  expect(store.spans(0)[0]!.text.length).toBe(4096);
  expect(store.cut(0)).toBe(1_000_000 - 4096);
});

test.each(["stdout@7", "stdout@7-90", "stderr@7-stdout@90"])("chosen lines are read as they are written: %s", (text) => {
  expect(rangeOf(...parseRange(text)!)).toBe(text);
});

test.each(["7", "stdin@7", "stdout@x", ""])("%j names no lines", (text) => {
  expect(parseRange(text)).toBeNull();
});

test("a line is found by any byte of it, also after cuts and in a tail", () => {
  const store = new LineStore([chunk("äb\ncd\n", 100), chunk("late\n", 900)], false);
  expect(store.lines.map((line) => [line.offset, line.gap])).toEqual([
    [100, 0],
    [104, 0],
    [107, 793],
    [900, 0],
  ]);
  expect([99, 100, 103, 104, 500, 902].map((offset) => store.find("stdout", offset))).toEqual([-1, 0, 0, 1, 2, 3]);
  expect(store.find("stderr", 100)).toBe(-1);
});

test("a search sees what has come since its last look", () => {
  const store = new LineStore();
  const search = new Search(store, patternOf("a.c", false)!);
  store.add(chunk("a.c\n\x1b[31ma\x1b[0m.", 0));
  expect(search.look()).toEqual([0]);
  store.add(chunk("C\nabc\n", 15));
  expect(search.look()).toEqual([0, 1]);
  expect(new Search(store, patternOf("^a.c$", true)!).look()).toEqual([0, 1, 2]);
  expect(patternOf("(", true)).toBeNull();
});

test("wrapped lines take as many rows as they need", () => {
  const lengths = [0, 10, 11, 35, 3];
  const rows = new Rows(lengths.length, 10, (line) => lengths[line]!);
  expect(rows.total).toBe(9);
  expect(lengths.map((_, line) => rows.startOf(line))).toEqual([0, 1, 2, 4, 8]);
  for (let line = 0; line < lengths.length; line++) expect(rows.lineAt(rows.startOf(line))).toBe(line);
  expect(rows.lineAt(7.5)).toBe(3);
  const plain = new Rows(5, 0, () => 0);
  expect([plain.total, plain.startOf(3), plain.lineAt(3.2)]).toEqual([5, 3, 3]);
});
