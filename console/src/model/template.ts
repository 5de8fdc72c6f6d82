/** An error of a template, at a line that counts from 1, if the server names one. */
export interface Problem {
  line: number | null;
  text: string;
}

/** Splits the server's error about a template, which has a line for each problem and names the template's line at its end. */
export function problemsOf(message: string): Problem[] {
  return message.split("\n").filter(Boolean).map((text) => {
    const match = /^(.*) \(line (\d+)\)$/.exec(text);
    return match ? { line: Number(match[2]), text: match[1]! } : { line: null, text };
  });
}

/** What replaces secrets in answers of the server. */
export const REDACTED = "******";

/** Returns the first line of a text with a default that the server has redacted; null without one. */
export function redactedLineOf(text: string): number | null {
  const index = text.split("\n").findIndex((line) => /\bdefault["']?\s*:\s*["']?\*{6}["']?\s*[,}]?\s*$/i.test(line));
  return index < 0 ? null : index + 1;
}

/** Files that a template names: contents by `get_file`, nested templates by their types. Entries of the catalog are none. */
const IN_TEMPLATE = [/\bget_file["']?\s*:\s*["']?([^\s"'{}[\],#]+)/g, /\btype["']?\s*:\s*["']?([^\s"'{}[\],#]+\.(?:ya?ml|template))\b/g];
/** Templates to which an environment maps types. */
const IN_ENVIRONMENT = [/:\s*["']?([^\s"'{}[\],#]+\.(?:ya?ml|template))\b/g];

/** Returns the names of the files that the texts need, those of the files included, and that `files` lacks. */
export function missingFiles(template: string, environment: string, files: Readonly<Record<string, string>>): string[] {
  const named = new Set<string>();
  const open = [{ text: template, patterns: IN_TEMPLATE }, { text: environment, patterns: IN_ENVIRONMENT }];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for (const pattern of next.patterns) {
      for (const [, name = ""] of next.text.matchAll(pattern)) {
        if (named.has(name) || name.startsWith("catalog://")) continue;
        named.add(name);
        if (files[name] !== undefined) open.push({ text: files[name], patterns: IN_TEMPLATE });
      }
    }
  }
  return [...named].filter((name) => files[name] === undefined).sort();
}

/** Returns for each needed name the chosen file with this path, or else with the same last segment. */
export function assignFiles(names: readonly string[], chosen: Readonly<Record<string, string>>): Record<string, string> {
  const assigned: Record<string, string> = {};
  for (const name of names) {
    const content = chosen[name] ?? chosen[name.replace(/.*\//, "")];
    if (content !== undefined) assigned[name] = content;
  }
  return assigned;
}
