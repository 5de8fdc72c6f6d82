/** How a state looks: never by color alone. */
export type Tone = "good" | "bad" | "busy" | "wait" | "warn" | "off";

export const SYMBOLS: Record<Tone, string> = { good: "✓", bad: "✗", busy: "◐", wait: "○", warn: "!", off: "–" };

const TONES: Record<string, Tone> = {
  COMPLETE: "good",
  ONLINE: "good",
  IN_SYNC: "good",
  DONE: "good",
  FAILED: "bad",
  DRIFTED: "bad",
  OFFLINE: "bad",
  UNRESPONSIVE: "bad",
  IN_PROGRESS: "busy",
  RUNNING: "busy",
  CANCELLING: "busy",
  DELIVERED: "busy",
  ENROLLING: "wait",
  QUEUED: "wait",
  INIT: "wait",
  PENDING_WINDOW: "wait",
  PENDING_APPROVAL: "warn",
  CANCELLED: "off",
  NEVER_SEEN: "off",
  LEFT: "off",
  UNKNOWN: "off",
  UNSUPPORTED: "off",
};

/** Returns how a state looks. States of stacks and resources begin with the action, as CREATE_COMPLETE. */
export function toneOf(state: string | null | undefined): Tone {
  if (!state) return "off";
  const exact = TONES[state];
  if (exact) return exact;
  const end = ["IN_PROGRESS", "COMPLETE", "FAILED"].find((word) => state.endsWith(`_${word}`));
  return end ? TONES[end]! : "off";
}

/** Returns a state in words: "create complete". */
export function wordsOf(state: string | null | undefined): string {
  return (state ?? "none").toLowerCase().replaceAll("_", " ");
}
