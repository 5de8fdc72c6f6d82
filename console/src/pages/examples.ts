import { missingFiles } from "../model/template";

const FOLDER = "../../../client/src/stoker_client/examples/";
const TEXTS = import.meta.glob<string>("../../../client/src/stoker_client/examples/**/*.{yaml,py}", {
  query: "?raw",
  import: "default",
  eager: true,
});

/** The names of the example templates, as `stoker examples` writes them. */
export const EXAMPLES: readonly string[] = Object.keys(TEXTS)
  .map((path) => path.slice(FOLDER.length))
  .filter((name) => /^[^/]+\.yaml$/.test(name))
  .map((name) => name.replace(".yaml", ""));

/** Returns an example and the files that it names; null if there is none with this name. */
export function findExample(name: string): { template: string; files: Record<string, string> } | null {
  const template = TEXTS[`${FOLDER}${name}.yaml`];
  if (template === undefined) return null;
  const files = missingFiles(template, "", {}).map((file) => [file, TEXTS[FOLDER + file] ?? ""] as const);
  return { template, files: Object.fromEntries(files) };
}
