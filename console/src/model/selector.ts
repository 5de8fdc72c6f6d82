/** A name that selectors can use, with its frequent values. */
export interface FactName {
  name: string;
  is_label?: boolean;
  count: number;
  values: readonly { value: string; count: number }[];
}

/** A text that completes a selector: it replaces the characters from `from` to the cursor. */
export interface Completion {
  from: number;
  insert: string;
  /** The number of servers that it stands for. */
  count: number;
}

/** Completions at once. */
const MOST = 12;
const NAME = /(?:^|[(,]|\s)([A-Za-z0-9][\w./-]*)?$/;
const VALUE = /([A-Za-z0-9][\w./-]*)\s*(?:!=|<=|>=|[=<>~])\s*("[^"]*|[\w./:@+*?-]*)$/;
const MEMBER = /([A-Za-z0-9][\w./-]*)\s+(?:not\s+)?in\s*\((?:[^()]*,)?\s*("[^"]*|[\w./:@+*?-]*)$/;
const PLAIN = /^[\w./:@+*?-]+$/;
const KEYWORDS = new Set(["and", "or", "not", "in", "exists"]);

/** Returns a value as a selector writes it: with characters of its own in quotes. */
export function quote(value: string): string {
  if (PLAIN.test(value) && !KEYWORDS.has(value)) return value;
  return value.includes('"') ? `'${value}'` : `"${value}"`;
}

/** Returns the selector of the servers with these host names. */
export function selectorOf(hosts: readonly string[]): string {
  return `hostname in (${hosts.map(quote).join(", ")})`;
}

/** Returns a selector that requires a condition, too. */
export function addCondition(selector: string, condition: string): string {
  if (!selector.trim()) return condition;
  if (splitConditions(selector)?.includes(condition)) return selector;
  return splitConditions(selector) ? `${selector} and ${condition}` : `(${selector}) and ${condition}`;
}

/** Returns the conditions that a selector joins with "and"; null if it is no such list. */
export function splitConditions(selector: string): string[] | null {
  const parts: string[] = [];
  let part = "";
  let depth = 0;
  for (const [token] of selector.matchAll(/"[^"]*"|'[^']*'|[\w./:@+*?-]+|\s+|[^\w\s]/g)) {
    if (depth === 0 && token === "or") return null;
    if (depth === 0 && (token === "and" || token === ",")) {
      parts.push(part.trim());
      part = "";
      continue;
    }
    if (token === "(") depth++;
    if (token === ")") depth--;
    part += token;
  }
  parts.push(part.trim());
  return parts.filter(Boolean);
}

/** Returns a selector without one of the conditions that it joins. */
export function removeCondition(selector: string, condition: string): string {
  return (splitConditions(selector) ?? []).filter((one) => one !== condition).join(" and ");
}

/** Returns the names and values that can follow at the cursor of a selector, the most frequent ones first. */
export function completionsAt(text: string, cursor: number, facts: readonly FactName[]): Completion[] {
  const before = text.slice(0, cursor);
  const value = MEMBER.exec(before) ?? VALUE.exec(before);
  if (value) {
    const part = value[2]!.replace(/^"/, "").toLowerCase();
    const values = facts.find((fact) => fact.name === value[1])?.values ?? [];
    return values
      .filter((one) => one.value.toLowerCase().includes(part) && one.value.toLowerCase() !== part)
      .slice(0, MOST)
      .map((one) => ({ from: cursor - value[2]!.length, insert: quote(one.value), count: one.count }));
  }
  const name = NAME.exec(before);
  if (!name || isAfterValue(before.slice(0, cursor - (name[1]?.length ?? 0)))) return [];
  const part = (name[1] ?? "").toLowerCase();
  return facts
    .filter((fact) => fact.name.toLowerCase().includes(part) && fact.name.toLowerCase() !== part)
    .sort((one, other) => rank(one, part) - rank(other, part) || other.count - one.count)
    .slice(0, MOST)
    .map((fact) => ({ from: cursor - part.length, insert: fact.name, count: fact.count }));
}

function rank(fact: FactName, part: string): number {
  return fact.name.toLowerCase().startsWith(part) ? 0 : 1;
}

/** Whether a word that begins here follows a complete condition, so that it is "and" or "or". */
function isAfterValue(text: string): boolean {
  const last = /(\S+)\s*$/.exec(text)?.[1];
  if (!last || /[(,]$/.test(last)) return false;
  return !["and", "or", "not"].includes(last);
}
