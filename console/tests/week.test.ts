import { describe, expect, test } from "vitest";
import { cronInWords } from "../src/model/cron";
import { clockChanges, cluster, dateOf, dayBorders, mergeSpans, offsetOf, startOfDay } from "../src/model/week";

const HOUR = 3_600_000;
const at = (text: string) => Date.parse(text);

describe("days of a zone", () => {
  test("offsets", () => {
    expect(offsetOf(at("2026-07-01T00:00Z"), "Europe/Vienna")).toBe(2 * HOUR);
    expect(offsetOf(at("2026-07-01T00:00Z"), "America/St_Johns")).toBe(-2.5 * HOUR);
    expect(offsetOf(at("2026-07-01T00:00Z"), "UTC")).toBe(0);
  });

  test.each([
    ["Europe/Vienna", "2026-03-27T12:00Z", [24, 24, 23, 24]],
    ["Europe/Vienna", "2026-10-24T00:30+02:00", [24, 25, 24, 24]],
    ["Australia/Lord_Howe", "2026-10-03T12:00Z", [24, 23.5, 24, 24]],
    ["America/Santiago", "2026-09-05T12:00Z", [24, 23, 24, 24]], // where midnight itself is skipped
    ["UTC", "2026-03-27T12:00Z", [24, 24, 24, 24]],
  ])("%s from %s", (zone, begin, hours) => {
    const borders = dayBorders(at(begin), 4, zone);
    expect(borders.slice(1).map((border, index) => (border - borders[index]!) / HOUR)).toEqual(hours);
    for (const border of borders) {
      expect(startOfDay(border, zone)).toBe(border);
      expect(dateOf(border, zone)).not.toBe(dateOf(border - 1, zone));
    }
  });

  test("changes of the clock", () => {
    const spring = clockChanges(at("2026-03-27T00:00Z"), at("2026-04-03T00:00Z"), "Europe/Vienna");
    expect(spring).toEqual([{ at: at("2026-03-29T01:00Z"), by: HOUR }]);
    const autumn = clockChanges(at("2026-10-24T22:00Z"), at("2026-10-31T00:00Z"), "Europe/Vienna");
    expect(autumn).toEqual([{ at: at("2026-10-25T01:00Z"), by: -HOUR }]);
    expect(clockChanges(at("2026-03-27T00:00Z"), at("2026-04-03T00:00Z"), "UTC")).toEqual([]);
  });
});

test("times close to each other are one group", () => {
  expect(cluster([0, 1, 2, 10, 11, 30], (time) => time, 5)).toEqual([[0, 1, 2], [10, 11], [30]]);
  expect(cluster([], (time: number) => time, 5)).toEqual([]);
});

test("spans that overlap are one", () => {
  expect(mergeSpans([[0, 2], [1, 5], [2, 3], [5, 6], [8, 9]])).toEqual([[0, 6], [8, 9]]);
  expect(mergeSpans([])).toEqual([]);
});

test.each([
  ["0 2 * * *", "every day at 02:00"],
  ["30 2 * * sun", "on Sunday at 02:30"],
  ["0 6,7 * * 1-5", "Monday to Friday at 06:00 and 07:00"],
  ["0 0 1,15 * *", "on the 1st and 15th at 00:00"],
  ["0 4 11 1 *", "on the 11th at 04:00 in January"],
  ["0 4 1 * mon", "on the 1st or on Monday at 04:00"],
  ["* * * * *", "every minute"],
  ["*/15 * * * *", "every 15 minutes"],
  ["*/5 * * * sat,sun", "every 5 minutes on Saturday and Sunday"],
  ["0 */6 * * *", "every 6 hours"],
  ["10 * * * *", "every hour at minute 10"],
  ["@weekly", "on Sunday at 00:00"],
  ["@hourly", "every hour"],
  ["0-10 2 * * *", null],
  ["0 9-17 * * *", null],
  ["0 2 l * *", null],
  ["0 2 * * xyz", null],
  ["not a cron", null],
])("%s is %s", (expression, words) => expect(cronInWords(expression)).toBe(words));
