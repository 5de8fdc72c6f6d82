import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

/** Each folder may import those before it. */
const LAYERS = ["api", "model", "ui", "views", "pages"];
const SOURCE = join(import.meta.dirname, "../src");

test("folders import in one direction", () => {
  const wrong: string[] = [];
  let count = 0;
  LAYERS.forEach((layer, index) => {
    for (const name of readdirSync(join(SOURCE, layer))) {
      for (const [, target = ""] of readFileSync(join(SOURCE, layer, name), "utf8").matchAll(/from "\.\.\/(\w+)\//g)) {
        count++;
        if (LAYERS.indexOf(target) > index || !LAYERS.includes(target)) wrong.push(`${layer}/${name} -> ${target}`);
      }
    }
  });
  expect(count).toBeGreaterThan(30);
  expect(wrong).toEqual([]);
});
