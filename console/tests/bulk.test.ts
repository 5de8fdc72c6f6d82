import { expect, test } from "vitest";
import { changeAll, describeFailures } from "../src/model/bulk";

const SERVERS = Array.from({ length: 1000 }, (_, index) => ({ name: `web${index}` }));

test("a thousand servers are changed, four at a time, and failures are folded", async () => {
  let running = 0;
  let most = 0;
  const counts: number[] = [];
  const change = async ({ name }: { name: string }) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    if (/^web[345]$/.test(name)) throw new Error("It is locked.");
    if (name === "web999") throw new Error("It has left.");
  };
  const failures = await changeAll(SERVERS, change, (count) => counts.push(count), new AbortController().signal);
  expect(most).toBe(4);
  expect(counts).toEqual(SERVERS.map((_, index) => index + 1));
  expect(describeFailures(failures, 1000)).toBe("4 of 1,000 failed.\nweb[3-5]: It is locked.\nweb999: It has left.");
});

test("no change begins after the end was asked for", async () => {
  const controller = new AbortController();
  const begun: string[] = [];
  const change = async ({ name }: { name: string }) => {
    begun.push(name);
    if (begun.length === 10) controller.abort();
  };
  expect(await changeAll(SERVERS, change, () => {}, controller.signal)).toEqual([]);
  expect(begun.length).toBeLessThan(15);
});
