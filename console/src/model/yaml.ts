/** Texts that YAML reads as something else than texts. */
const RESERVED = /^(y|yes|n|no|true|false|on|off|null|~)$/i;
/** Texts that need no quotes anywhere, also within brackets. */
const PLAIN = /^[A-Za-z_/](?:[\w ./@%+~^()$:;=?!<>-]*[\w./@%+~^()$;=?!<>-])?$/;

/** Returns data as YAML text in the style of templates; functions with short arguments stay on one line. */
export function toYaml(value: unknown): string {
  if (isBlock(value)) return blockOf(value, 0).join("\n") + "\n";
  return `${inlineOf(value)}\n`;
}

function isBlock(value: unknown): value is unknown[] | Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

/** Returns the lines of a list or map that is not empty. */
function blockOf(value: unknown[] | Record<string, unknown>, depth: number): string[] {
  const pad = " ".repeat(depth);
  if (Array.isArray(value)) {
    return value.flatMap((item) => {
      if (!isBlock(item) || isShort(item)) return textOf(item, `${pad}-`, depth);
      const [first = "", ...rest] = blockOf(item, depth + 2);
      return [`${pad}- ${first.slice(depth + 2)}`, ...rest];
    });
  }
  return Object.entries(value).flatMap(([key, item]) => {
    const head = `${pad}${scalarOf(key)}:`;
    return isBlock(item) && !isShort(item) ? [head, ...blockOf(item, depth + 2)] : textOf(item, head, depth);
  });
}

/** Returns the lines of a value after its key or dash: one line, or the lines of a literal text. */
function textOf(value: unknown, head: string, depth: number): string[] {
  if (typeof value !== "string" || !isLiteral(value)) return [`${head} ${inlineOf(value)}`];
  const end = value.endsWith("\n") ? (value.endsWith("\n\n") ? "+" : "") : "-";
  const lines = (value.endsWith("\n") ? value.slice(0, -1) : value).split("\n");
  return [`${head} |${end}`, ...lines.map((line) => (line ? " ".repeat(depth + 2) + line : ""))];
}

/** Returns whether a text can be written as it is, over several lines. */
function isLiteral(text: string): boolean {
  return /^[^\s][^\n]*\n/.test(text) && !/[^\n\t\x20-\x7e\u00a0-\ud7ff\ue000-\ufefe]/u.test(text);
}

/** Returns whether a map is a call of a function with plain arguments, such as {get_param: port}. */
function isShort(value: unknown[] | Record<string, unknown>): boolean {
  const entries = Object.entries(value);
  if (Array.isArray(value) || entries.length !== 1 || !entries[0]![0].startsWith("get_")) return false;
  const parts = Array.isArray(entries[0]![1]) ? entries[0]![1] : [entries[0]![1]];
  return parts.every((part) => typeof part === "number" || (typeof part === "string" && scalarOf(part) === part));
}

function inlineOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inlineOf).join(", ")}]`;
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value).map(([key, item]) => `${scalarOf(key)}: ${inlineOf(item)}`).join(", ")}}`;
  }
  return typeof value === "string" ? scalarOf(value) : `${value}`;
}

function scalarOf(text: string): string {
  return PLAIN.test(text) && !RESERVED.test(text) && !/: | #|[:?]$/.test(text) ? text : JSON.stringify(text);
}
