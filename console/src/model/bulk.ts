import { groupBy } from "./groups";
import { foldNames } from "./ranges";

/** Changes at the same time: a browser has few connections to a server. */
const AT_A_TIME = 4;

interface Failure<T> {
  item: T;
  reason: string;
}

/**
 * Changes items, a few at a time, and returns those that failed.
 *
 * `onProgress` receives the number of the changed ones. No more changes begin after `signal` is aborted.
 */
export async function changeAll<T>(
  items: readonly T[],
  change: (item: T) => Promise<unknown>,
  onProgress: (count: number) => void,
  signal: AbortSignal,
): Promise<Failure<T>[]> {
  const failures: Failure<T>[] = [];
  let next = 0;
  let ended = 0;
  const work = async () => {
    while (next < items.length && !signal.aborted) {
      const item = items[next++]!;
      await change(item).catch((problem: unknown) => failures.push({ item, reason: (problem as Error).message }));
      onProgress(++ended);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return failures;
}

/** Returns failures in words: each reason once, with the names of its items. */
export function describeFailures<T extends { name: string }>(failures: readonly Failure<T>[], total: number): string {
  const reasons = [...groupBy(failures, ({ reason }) => reason)].map(([reason, group]) => `${foldNames(group.map(({ item }) => item.name))}: ${reason}`);
  return [`${failures.length.toLocaleString("en")} of ${total.toLocaleString("en")} failed.`, ...reasons].join("\n");
}
