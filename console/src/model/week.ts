const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const formats = new Map<string, Intl.DateTimeFormat>();

/** Returns how far a zone's clock is ahead of UTC at a time, in milliseconds. */
export function offsetOf(time: number, zone: string): number {
  let format = formats.get(zone);
  if (!format) {
    format = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" });
    formats.set(zone, format);
  }
  const name = format.formatToParts(time).find((part) => part.type === "timeZoneName")?.value ?? "";
  const match = /([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(name);
  if (!match) return 0;
  const seconds = Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] ?? 0);
  return (match[1] === "-" ? -1000 : 1000) * seconds;
}

/** Returns the first moment of the day of a time, in a zone. Where the clock skips midnight, the day begins later. */
export function startOfDay(time: number, zone: string): number {
  const midnight = Math.floor((time + offsetOf(time, zone)) / DAY) * DAY;
  const isInDay = (moment: number) => moment + offsetOf(moment, zone) >= midnight;
  const candidates = [-1, 0, 1].map((days) => midnight - offsetOf(time + days * DAY, zone));
  const start = candidates.sort((one, other) => one - other).find(isInDay);
  return start ?? midnight - offsetOf(time, zone);
}

/** Returns the borders of `count` days from that of `begin` on, one more than days. Days of clock changes have other lengths. */
export function dayBorders(begin: number, count: number, zone: string): number[] {
  const borders = [startOfDay(begin, zone)];
  while (borders.length <= count) borders.push(startOfDay(borders[borders.length - 1]! + 36 * HOUR, zone));
  return borders;
}

interface ClockChange {
  /** When the clock is changed, and by how many milliseconds. */
  at: number;
  by: number;
}

/** Returns the changes of a zone's clock between two times. */
export function clockChanges(begin: number, end: number, zone: string): ClockChange[] {
  const changes: ClockChange[] = [];
  for (let hour = begin; hour < end; hour += HOUR) {
    let [low, high] = [hour, Math.min(hour + HOUR, end)];
    const before = offsetOf(low, zone);
    const by = offsetOf(high, zone) - before;
    if (by === 0) continue;
    while (high - low > 1000) {
      const middle = (low + high) / 2;
      if (offsetOf(middle, zone) === before) low = middle;
      else high = middle;
    }
    changes.push({ at: Math.round(high / 1000) * 1000, by });
  }
  return changes;
}

/** Returns items in groups of neighbors that are closer than `gap` to the first one of the group. The items are sorted. */
export function cluster<T>(items: readonly T[], timeOf: (item: T) => number, gap: number): T[][] {
  const groups: T[][] = [];
  for (const item of items) {
    const last = groups[groups.length - 1];
    if (last && timeOf(item) - timeOf(last[0]!) < gap) last.push(item);
    else groups.push([item]);
  }
  return groups;
}

/** Returns spans of time, sorted by their begin, with those that overlap or adjoin as one. */
export function mergeSpans(spans: readonly (readonly [begin: number, end: number])[]): [number, number][] {
  const merged: [number, number][] = [];
  for (const [begin, end] of spans) {
    const last = merged[merged.length - 1];
    if (last && begin <= last[1]) last[1] = Math.max(last[1], end);
    else merged.push([begin, end]);
  }
  return merged;
}

/** Returns the day of a time in a zone, as 2026-03-29. */
export function dateOf(time: number, zone: string): string {
  return new Date(time + offsetOf(time, zone)).toISOString().slice(0, 10);
}
