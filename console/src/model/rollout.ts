/** What a target shows of its place in a rollout. */
interface Placed {
  position: number;
  server_id: string;
}

/** The number of ended targets at a time in milliseconds. */
export interface Sample {
  time: number;
  ended: number;
}

/** Milliseconds of the past from which a rate follows. */
const PAST = 60_000;

/** Returns the positions of the canaries' targets, which are those of the first servers; empty: no canary. */
export function canariesOf(targets: readonly Placed[], canary: number | string | null): ReadonlySet<number> {
  const servers = new Set(targets.map((target) => target.server_id));
  const count = typeof canary === "string" ? Math.ceil((servers.size * parseFloat(canary)) / 100) : (canary ?? 0);
  if (count === 0 || count >= servers.size) return new Set();
  const ordered = [...targets].sort((one, other) => one.position - other.position);
  const seen = new Set<string>();
  const positions = new Set<number>();
  for (const { server_id, position } of ordered) {
    seen.add(server_id);
    if (seen.size > count) break;
    positions.add(position);
  }
  return positions;
}

/** Adds a sample, and drops those that are older than a minute, except for the newest of them. */
export function addSample(samples: readonly Sample[], sample: Sample): Sample[] {
  const all = [...samples, sample];
  const first = all.findLastIndex(({ time }) => time <= sample.time - PAST);
  return all.slice(Math.max(0, first));
}

/** Returns how many targets end in a minute; null before two samples differ. */
export function rateOf(samples: readonly Sample[]): number | null {
  const [first, last] = [samples[0], samples.at(-1)];
  if (!first || !last || last.ended <= first.ended || last.time <= first.time) return null;
  return ((last.ended - first.ended) * 60_000) / (last.time - first.time);
}
