const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** Parses a time of the API; times without a zone are UTC, as in Heat. */
export function parseTime(text: string): number {
  return Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
}

/** Returns a duration in its largest unit, such as "3 min". Times of the API have whole seconds. */
export function durationOf(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds / 1000);
  for (const [size, unit] of UNITS) {
    if (seconds >= size) return `${Math.floor(seconds / size)} ${unit}`;
  }
  return "< 1 s";
}

/** Returns a time relative to `now`, such as "3 min ago" or "in 2 h". */
export function relativeOf(time: number, now: number): string {
  const distance = Math.abs(now - time);
  if (distance < 10_000) return time <= now ? "just now" : "now";
  return time <= now ? `${durationOf(distance)} ago` : `in ${durationOf(distance)}`;
}

/** Returns a number of bytes, such as "1.2 MB". */
export function bytesOf(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(1)} kB`;
  return `${(count / 1e6).toFixed(1)} MB`;
}
