import yaml from "js-yaml";
import { expect, test } from "vitest";
import { compareLines, parseDifference } from "../src/model/diff";
import { fieldsOf, parseField, readForm, type Described } from "../src/model/parameters";
import { differencesOf, foldResults, foldRuns, type PlannedChange } from "../src/model/plan";
import { assignFiles, missingFiles, problemsOf, redactedLineOf } from "../src/model/template";
import { toYaml } from "../src/model/yaml";

/** A sequence of numbers below `most` that is the same in each run. */
function random(seed: number): (most: number) => number {
  let state = seed;
  return (most) => ((state = (state * 48271) % 2147483647), state % most);
}

const TEXTS = ["", "a", "a b", "yes", "12", "1e3", "null", "2018-08-31", "a: b", "a #b", "a:", "- a", "#!/bin/sh\necho\n", "x\n\n y\n\n",
  " lead\nx", "tab\tx\n", "ende\nä", "{a", "'q'", "*x", "&x", "%", "@", "a\r\nb", "a ", "\u2028\nb", "x\u0007\n", "C:\\x", "=", "get_file"];

function value(next: (most: number) => number, depth: number): unknown {
  const kind = next(depth > 3 ? 5 : 9);
  if (kind < 3) return TEXTS[next(TEXTS.length)];
  if (kind === 3) return next(2) === 0;
  if (kind === 4) return [0, -1.5, 1e21, null][next(4)];
  const parts = Array.from({ length: next(4) }, () => value(next, depth + 1));
  if (kind < 7) return parts;
  return Object.fromEntries(parts.map((part) => [["get_param", ...TEXTS][next(TEXTS.length + 1)], part]));
}

test("YAML text is read as what was written", () => {
  for (let seed = 1; seed < 2000; seed++) {
    const data = { root: value(random(seed), 0) };
    expect(yaml.load(toYaml(data)), toYaml(data)).toEqual(data);
  }
});

test("YAML text looks like a template", () => {
  const config = { type: "OS::Heat::SoftwareConfig", properties: { group: "script", config: "#!/bin/sh\necho\n", inputs: [{ name: "a" }, "b"] } };
  const text = toYaml({ resources: { c: config }, outputs: { o: { value: { get_attr: ["c", "x"] } } } });
  expect(text).toBe(`resources:
  c:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: |
        #!/bin/sh
        echo
      inputs:
        - name: a
        - b
outputs:
  o:
    value: {get_attr: [c, x]}
`);
});

test("a difference leads from one text to the other", () => {
  for (let seed = 1; seed < 300; seed++) {
    const next = random(seed);
    const lines = () => Array.from({ length: next(12) }, () => "abc"[next(3)]!).join("\n");
    const [before, after] = [lines(), lines()];
    if (before === after) continue;
    const diff = compareLines(before.split("\n"), after.split("\n"));
    const without = (kind: string) => diff.filter((line) => line.kind !== kind).map((line) => line.text).join("\n");
    expect([without("added"), without("removed")]).toEqual([before, after]);
  }
});

test("errors are found at their lines", () => {
  expect(problemsOf("resources.a: : unknown (line 7)\nno line")).toEqual([
    { line: 7, text: "resources.a: : unknown" },
    { line: null, text: "no line" },
  ]);
  expect(redactedLineOf('a: "******"\nb:\n  default: "******"')).toBe(3);
  expect(redactedLineOf("# ******")).toBe(null);
});

test("a template names its files, and those that they need", () => {
  const text = "config: {get_file: a/b.sh}\n  type: inner.yaml\n  config: {get_file: 'catalog://nginx/1'}\n  path: x.yaml";
  expect(missingFiles(text, "", {})).toEqual(["a/b.sh", "inner.yaml"]);
  expect(missingFiles(text, "  My::Type: m.yaml", { "inner.yaml": '"get_file": "deep.txt"' })).toEqual(["a/b.sh", "deep.txt", "m.yaml"]);
  expect(assignFiles(["a/b.sh", "c"], { "b.sh": "x" })).toEqual({ "a/b.sh": "x" });
});

const parameter = (more: Partial<Described>): Described => ({ Type: "String", Description: "", NoEcho: "false", Label: "", ...more });

test("values of the form have the parameters' types", () => {
  const groups = fieldsOf({
    name: parameter({}),
    count: parameter({ Type: "Number", Default: 3, MinValue: 1 }),
    secret: parameter({ NoEcho: "true", Default: "******" }),
    data: parameter({ Type: "Json", Default: {} }),
    list: parameter({ Type: "CommaDelimitedList", Default: ["a"] }),
    flag: parameter({ Type: "Boolean", Default: true }),
  });
  expect(groups.map((group) => group.fields.map((field) => [field.name, field.standard, field.rules]))).toEqual([
    [["name", "", []], ["count", "3", ["at least 1"]], ["secret", "", []], ["data", "{}", []], ["list", "a", []], ["flag", "true", []]],
  ]);
  expect(readForm(groups, {}).problems).toEqual({ name: "A value is needed." });
  const texts = { name: "1", count: "4", secret: "x", data: '{"a": [1]}', list: "b, c", flag: "false" };
  expect(readForm(groups, texts)).toEqual({
    values: { name: "1", count: 4, secret: "x", data: { a: [1] }, list: ["b", "c"], flag: false },
    cleared: [],
    problems: {},
  });
  expect(readForm(groups, { name: "1", count: "" }, { name: "1", count: "4", secret: "" })).toEqual({ values: {}, cleared: ["count"], problems: {} });
  expect(parseField(groups[0]!.fields[3]!, "{")).toHaveProperty("problem");
});

test("fields stand in their groups", () => {
  const groups = fieldsOf({ a: parameter({}), b: parameter({}) }, [{ label: "First", parameters: ["b", "absent"] }, { parameters: [] }]);
  expect(groups.map((group) => [group.title, group.fields.map((field) => field.name)])).toEqual([
    ["First", ["b"]],
    ["Other parameters", ["a"]],
  ]);
});

test("plans show differences, and fold equal servers", () => {
  const change = { changed_properties: ["config", "later"], previous_properties: { config: "a\nb" }, properties: { config: "a\nc", later: null } };
  expect(differencesOf(change as unknown as PlannedChange)).toEqual([
    { name: "config", lines: [{ kind: "equal", text: "a" }, { kind: "removed", text: "b" }, { kind: "added", text: "c" }] },
    { name: "later", lines: [] },
  ]);
  const run = (name: string, server: string) => ({ resource_name: name, action: "UPDATE", mode: null, server_id: "x", server_name: server });
  expect(foldRuns([run("web/0", "web1"), run("web/1", "web2"), run("db", "db1")])).toMatchObject([
    { text: "UPDATE of web/…", servers: "web[1-2]", count: 2 },
    { text: "UPDATE of db", servers: "db1" },
  ]);
  const result = (server: string, summary: string) => ({ server, summary, changes: [] });
  expect(foldResults([result("a", "1"), result("b", "2"), result("c", "2")]).map((group) => group.servers)).toEqual([["b", "c"], ["a"]]);
});

test("printed differences have the marks of their lines", () => {
  expect(parseDifference("--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-old\n+new\n")).toEqual([
    { kind: "skipped", text: "@@ -1,2 +1,2 @@" },
    { kind: "equal", text: "same" },
    { kind: "removed", text: "old" },
    { kind: "added", text: "new" },
  ]);
});
