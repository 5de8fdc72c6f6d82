import type { ComponentChildren } from "preact";
import { SYMBOLS, type Tone } from "../model/state";
import { durationOf } from "../model/time";
import { clockChanges, cluster, mergeSpans } from "../model/week";
import { now, ZONE } from "../ui/parts";

/** Something at one time of a row. */
export interface Mark {
  at: number;
  tone: Tone;
  text: string;
  /** Until when what happens there waits. */
  until?: number;
}

export interface Row {
  key: string;
  label: ComponentChildren;
  /** What a screen reader is told of the row; the table below the week has the details. */
  summary: string;
  windows: readonly { begin: number; end: number; text: string }[];
  marks: readonly Mark[];
}

/** Pixels that a mark takes, and roughly those of a row. */
const MARK = 28;
const widthOf = () => Math.max(300, Math.min(innerWidth, 1840) - (innerWidth < 760 ? 60 : 270));

/** Rows on one axis of days, with the present time and the changes of the clock. */
export function Week({ rows, borders, zone }: { rows: readonly Row[]; borders: readonly number[]; zone: string }) {
  const [begin, end] = [borders[0]!, borders[borders.length - 1]!];
  const percent = (time: number) => ((Math.min(Math.max(time, begin), end) - begin) / (end - begin)) * 100;
  const span = (from: number, to: number) => ({ left: `${percent(from)}%`, width: `${percent(to) - percent(from)}%` });
  const isNow = now.value >= begin && now.value < end;
  const changes = clockChanges(begin, end, zone);
  return (
    <div class="week">
      <div class="week-days" aria-hidden="true">
        {borders.slice(0, -1).map((border, index) => (
          <span key={border} style={span(border, borders[index + 1]!)}>
            {dayOf(border, zone)}
          </span>
        ))}
      </div>
      {rows.map((row) => (
        <div key={row.key} class="week-row">
          <div class="week-label">{row.label}</div>
          <div class="week-track" role="img" aria-label={row.summary}>
            {row.windows.map((period, index) => (
              <span key={index} class="week-window" style={span(period.begin, period.end)} title={period.text} />
            ))}
            {borders.slice(1, -1).map((border) => (
              <span key={border} class="week-border" style={{ left: `${percent(border)}%` }} />
            ))}
            {changes.map((change) => (
              <span key={change.at} class="week-change" style={{ left: `${percent(change.at)}%` }} title={changeText(change.by)} />
            ))}
            {isNow && <span class="week-now" style={{ left: `${percent(now.value)}%` }} />}
            {mergeSpans(row.marks.flatMap((mark) => (mark.until === undefined ? [] : [[mark.at, mark.until] as const]))).map(([from, until]) => (
              <span key={from} class="week-wait" style={span(from, until)} title={`Waits until ${momentOf(until, zone)}`} />
            ))}
            {cluster(row.marks, (mark) => mark.at, ((end - begin) * MARK) / widthOf()).map((group) => (
              <Chip key={group[0]!.at} marks={group} left={percent(group[0]!.at)} />
            ))}
          </div>
        </div>
      ))}
      <ul class="week-key">
        <li>
          <span class="week-now" aria-hidden="true" /> now
        </li>
        <li>
          <span class="week-window" aria-hidden="true" /> maintenance window open
        </li>
        <li>
          <span class="week-wait" aria-hidden="true" /> waits for a window
        </li>
        {changes.map((change) => (
          <li key={change.at}>
            <span class="week-change" aria-hidden="true" /> {dayOf(change.at, zone)}: {changeText(change.by)}
          </li>
        ))}
        <li class="quiet">All times in {zone}</li>
      </ul>
    </div>
  );
}

const HOUR = 3_600_000;
/** Hours of a line of a day before now and after it, and roughly its pixels. */
const [PAST, AHEAD, DAY_WIDTH] = [1, 24, 340];

/** The next day on one line. The list beside it says the same in words. */
export function DayLine({ marks }: { marks: readonly Mark[] }) {
  const begin = now.value - PAST * HOUR;
  const length = (PAST + AHEAD) * HOUR;
  const left = (time: number) => (100 * Math.min(Math.max(time - begin, 0), length)) / length;
  return (
    <div class="week-track day-line" role="img" aria-label={`The next day: ${marks.length === 1 ? "one schedule" : `${marks.length} schedules`}`}>
      <span class="week-now" style={{ left: `${left(now.value)}%` }} title="now" />
      {cluster(marks, (mark) => mark.at, (length * MARK) / DAY_WIDTH).map((group) => (
        <Chip key={group[0]!.at} marks={group} left={left(group[0]!.at)} />
      ))}
    </div>
  );
}

/** One mark, or the number of several that are too close to each other; the worst of them gives the tone. */
function Chip({ marks, left }: { marks: readonly Mark[]; left: number }) {
  const tone = (["bad", "warn", "busy", "good", "wait"] as const).find((one) => marks.some((mark) => mark.tone === one)) ?? "off";
  const text = marks.length > 8 ? `${marks.length} times: ${marks[0]!.text} … ${marks[marks.length - 1]!.text}` : marks.map((mark) => mark.text).join("\n");
  return (
    <span class={`week-mark ${tone}`} style={{ left: `${left}%` }} title={text}>
      {marks.length === 1 ? SYMBOLS[tone] : marks.length}
    </span>
  );
}

function dayOf(time: number, zone: string): string {
  return new Intl.DateTimeFormat("en-GB", { weekday: "short", day: "numeric", timeZone: zone }).format(time);
}

/** Returns a time of day and the day, as "Fri 27, 02:30". */
export function momentOf(time: number, zone = ZONE): string {
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone }).format(time);
  return `${dayOf(time, zone)}, ${clock}`;
}

function changeText(by: number): string {
  return `the clock goes ${by > 0 ? "forward" : "back"} by ${durationOf(Math.abs(by))}`;
}

/** Returns how many marks have which state, in words. */
export function summarize(marks: readonly Mark[]): string {
  const waiting = marks.filter((mark) => mark.until !== undefined).length;
  const past = marks.filter((mark) => mark.tone !== "wait" && mark.tone !== "warn").length;
  const missed = marks.filter((mark) => mark.tone === "warn").length;
  const ahead = marks.length - past - missed;
  const parts = [past && `${past} in the past`, ahead && `${ahead} ahead`, waiting && `${waiting} of which wait`, missed && `${missed} missed`];
  return parts.filter(Boolean).join(", ") || "no times";
}
