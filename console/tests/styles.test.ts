import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");
const SOURCES = ["console/src/ui", "console/src/views", "console/src/pages", "console/src/model", "server/src/stoker/http/console"];

function read(folder: string, pattern: RegExp): string {
  const names = readdirSync(join(ROOT, folder)).filter((name) => pattern.test(name));
  return names.map((name) => readFileSync(join(ROOT, folder, name), "utf8")).join("\n");
}

test("each class of the styles is in use", () => {
  const styles = read("console/src/styles", /\.css$/).replace(/\/\*.*?\*\//gs, "");
  const text = [...SOURCES, "console/src"].map((folder) => read(folder, /\.(tsx?|py)$/)).join("\n");
  const classes = new Set([...styles.matchAll(/\.([a-z][\w-]*)(?=[^{}]*\{)/g)].map((match) => match[1]!));
  // Colors of terminals have computed names, and uPlot has names of its own.
  const unused = [...classes].filter((name) => !/^(fg|bg|u)-/.test(name) && !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text));
  expect(classes.size).toBeGreaterThan(100);
  expect(unused).toEqual([]);
});
