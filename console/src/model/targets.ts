/** What decides whether a server takes a run now. */
export interface Target {
  id: string;
  name: string;
  status: string;
  problem: string | null;
  window: { open: boolean; changes_at: string | null };
  denial?: string | null;
  policy: { maintenance_windows: readonly unknown[] };
}

export interface Verdict {
  /** "now": the run begins at once; "waits": later; "out": never. */
  when: "now" | "waits" | "out";
  reason: string;
}

/** Returns whether and when a run begins on a server, and why not now. */
export function judge(server: Target, requireWindow: boolean): Verdict {
  if (server.status === "PENDING_APPROVAL") return { when: "out", reason: "it waits for approval" };
  if (server.status === "LEFT") return { when: "out", reason: "its agent has left" };
  if (server.denial) return { when: "out", reason: server.denial };
  if (requireWindow && server.policy.maintenance_windows.length === 0) {
    return { when: "out", reason: "it has no maintenance window to wait for" };
  }
  if (server.status !== "ONLINE") return { when: "waits", reason: `until its agent is back (${server.status.toLowerCase().replaceAll("_", " ")})` };
  if (server.problem) return { when: "waits", reason: `until it can run again: ${server.problem}` };
  if (!server.window.open) return { when: "waits", reason: "until its maintenance window opens" };
  return { when: "now", reason: "" };
}

/** Returns the names, patterns and ids in a text, which blanks, commas or lines divide; quotes keep blanks. */
export function splitNames(text: string): string[] {
  return [...text.matchAll(/"([^"]*)"|([^\s,"]+)/g)].map((match) => match[1] ?? match[2]!).filter(Boolean);
}

/** Returns names as `splitNames` reads them. */
export function joinNames(names: readonly string[]): string {
  return names.map((name) => (/[\s,"]/.test(name) ? `"${name}"` : name)).join(" ");
}

/** Returns the changes to labels in a text: NAME=VALUE sets a label, NAME- removes it. Throws an Error with a sentence. */
export function parseLabels(text: string): Record<string, string | null> {
  const changes: Record<string, string | null> = {};
  for (const word of splitNames(text)) {
    const match = /^([^=]+)=(.*)$/.exec(word) ?? /^([^=]+)-()$/.exec(word);
    if (!match) throw new Error(`“${word}” is neither NAME=VALUE nor NAME-.`);
    changes[match[1]!] = word.includes("=") ? match[2]! : null;
  }
  if (Object.keys(changes).length === 0) throw new Error("Give at least one change: NAME=VALUE or NAME-.");
  return changes;
}

/** Parses a number of servers or a percentage, such as 10%; null for an empty text. Throws an Error with a sentence. */
export function parseCanary(text: string): number | string | null {
  if (text.trim() === "") return null;
  if (/^(100|[1-9]\d?)%$/.test(text.trim())) return text.trim();
  if (/^[1-9]\d{0,8}$/.test(text.trim())) return Number(text.trim());
  throw new Error("The canary is a number of servers, or a percentage such as 10%.");
}

/** Returns the config's script for a command: with an interpreter line for sh if it has none. */
export function scriptOf(command: string): string {
  const text = command.endsWith("\n") ? command : `${command}\n`;
  return text.startsWith("#!") ? text : `#!/bin/sh\n${text}`;
}
