import { change, get, type Schemas } from "../api/client";
import { cronInWords } from "../model/cron";
import { toneOf, wordsOf } from "../model/state";
import { parseTime } from "../model/time";
import { dateOf, dayBorders, startOfDay } from "../model/week";
import { Actions, DialogButton } from "../ui/actions";
import { useData } from "../ui/data";
import { RowChoice } from "../ui/filters";
import { Card, Data, Empty, Facts, Head, now, State, Time, Value, ZONE } from "../ui/parts";
import { Link, navigate, query, setQuery } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { type Mark, momentOf, type Row, summarize, Week } from "../views/week";
import { ScheduleForm } from "./schedule_form";

type Schedule = Schemas["SoftwareSchedule"];
type Trigger = Schemas["SoftwareTrigger"];
type ScheduledTime = Schemas["ScheduledTime"];
type OpenPeriod = Schemas["OpenPeriod"];

interface Plan {
  schedules: Schedule[];
  times: ScheduledTime[];
  hasMore: boolean;
  windows: OpenPeriod[];
  triggers: Trigger[];
}

const DAYS = 7;
/** Milliseconds after which a trigger no longer counts as one of its time, as on the server. */
const LATE = 60_000;

async function load(begin: number, end: number, signal: AbortSignal): Promise<Plan> {
  const range = { from: iso(Math.max(begin, now.value)), until: iso(Math.max(end, now.value)) };
  const [schedules, forecast, triggers] = await Promise.all([
    get("/v1/{project}/software_schedules", {}, {}, signal),
    get("/v1/{project}/software_schedules/forecast", {}, range, signal),
    get("/v1/{project}/software_triggers", {}, { limit: 500 }, signal),
  ]);
  return {
    schedules: schedules.software_schedules,
    times: forecast.forecast,
    hasMore: forecast.more,
    windows: forecast.windows,
    triggers: triggers.software_triggers.filter((trigger) => trigger.schedule_id),
  };
}

/** The schedules in a week, and as a table; the chosen one with what it runs. */
export function SchedulesPage() {
  const given = Date.parse(`${query.value.get("from") ?? ""}T12:00:00Z`);
  const begin = startOfDay(Number.isNaN(given) ? now.value : given, ZONE);
  const borders = dayBorders(begin, DAYS, ZONE);
  const loaded = useData(`schedules ${begin}`, (signal) => load(begin, borders[DAYS]!, signal), 10);
  const move = (days: number) => {
    const day = dateOf(startOfDay(begin + (days + 0.5) * 86_400_000, ZONE), ZONE);
    setQuery({ from: day === dateOf(now.value, ZONE) ? "" : day });
  };
  return (
    <>
      <Head title="Schedules">
        <button class="view" onClick={() => move(-DAYS)}>Previous week</button>
        <button class="view" onClick={() => setQuery({ from: "" })}>From today</button>
        <button class="view" onClick={() => move(DAYS)}>Next week</button>
        <DialogButton label="New schedule" class="primary change">
          {(close) => <ScheduleForm onDone={loaded.reload} onClose={close} />}
        </DialogButton>
      </Head>
      <Data of={loaded}>
        {(plan) =>
          plan.schedules.length === 0 ? (
            <Empty>
              There are no schedules yet. “New schedule” and <code>stoker schedule create</code> create one.
            </Empty>
          ) : (
            <>
              <Card title={titleOf(borders)}>
                <Week rows={plan.schedules.map((schedule) => rowOf(schedule, plan, borders))} borders={borders} zone={ZONE} />
                {plan.hasMore && (
                  <p class="quiet">
                    The forecast ends {momentOf(parseTime(plan.times[plan.times.length - 1]!.time))}: there are more
                    than {plan.times.length} times until the end of the week.
                  </p>
                )}
              </Card>
              <Chosen plan={plan} reload={loaded.reload} />
              <Table label="Schedules" rows={plan.schedules} columns={COLUMNS} keyOf={(schedule) => schedule.id} empty={null} />
              <Card title="Next times">
                <Table label="Next times" rows={plan.times.slice(0, 100)} columns={TIMES} keyOf={(time) => time.schedule_id + time.time} empty="No schedule is due in this week." />
              </Card>
            </>
          )
        }
      </Data>
    </>
  );
}

function titleOf(borders: readonly number[]): string {
  const format = new Intl.DateTimeFormat("en", { day: "numeric", month: "long", year: "numeric", timeZone: ZONE });
  return format.formatRange(borders[0]!, borders[DAYS]! - 1);
}

const COLUMNS: Column<Schedule>[] = [
  { title: "Name", cell: (schedule) => <Choice of={schedule} />, sort: (schedule) => schedule.name },
  { title: "When", cell: timesInWords, sort: timesInWords },
  { title: "Runs", cell: (schedule) => workOf(schedule), isWide: true },
  { title: "Next", cell: (schedule) => <Time at={schedule.next_time} none={schedule.enabled ? "never" : "paused"} />, sort: (schedule) => schedule.next_time ?? "~" },
  { title: "Last", cell: (schedule) => <Time at={schedule.last_time} />, sort: (schedule) => schedule.last_time ?? "", isWide: true },
  { title: "Missed", cell: (schedule) => (schedule.missed_count > 0 ? <State of={`${schedule.missed_count}`} tone="warn" /> : <span class="quiet">0</span>), sort: (schedule) => schedule.missed_count, isWide: true, isNumber: true },
  { title: "Problem", cell: (schedule) => schedule.last_error && <span class="bad">{schedule.last_error}</span>, isWide: true },
];

const TIMES: Column<ScheduledTime>[] = [
  { title: "Time", cell: (time) => momentOf(parseTime(time.time)) },
  { title: "Schedule", cell: (time) => time.schedule_name },
  { title: "Servers", cell: (time) => time.servers, isNumber: true },
  { title: "Waits", cell: (time) => (time.waits_until ? `${time.waiting} until ${momentOf(parseTime(time.waits_until))}` : "") },
  { title: "Problem", cell: (time) => time.problem && <span class="bad">{time.problem}</span>, isWide: true },
];

function Choice({ of: schedule }: { of: Schedule }) {
  return <RowChoice name="schedule" value={schedule.id} text={schedule.name} />;
}

/** Returns when a schedule is due: its cron expression in words, or its only time. */
function timesInWords(schedule: Schedule): string {
  if (schedule.cron === null) return schedule.at ? `once, ${momentOf(parseTime(schedule.at))}` : "never";
  const words = cronInWords(schedule.cron) ?? schedule.cron;
  return schedule.timezone === ZONE ? words : `${words} (${schedule.timezone})`;
}

/** Returns what a trigger runs, and where, in a few words. */
function workOf({ trigger, config_name }: Schedule): string {
  const { stack, resource, action, config_id, deployment_id, servers, selector, labels } = trigger as Record<string, unknown>;
  const short = (id: unknown) => String(id).slice(0, 8);
  const what = resource ? `${String(stack)}/${String(resource)}` : config_id ? (config_name ?? `config ${short(config_id)}`) : `deployment ${short(deployment_id)}`;
  const where = selector ?? (labels ? Object.entries(labels).map(([name, value]) => `${name}=${String(value)}`).join(",") : Array.isArray(servers) ? countOf(servers.length) : "");
  return [what, action, where && `on ${String(where)}`].filter(Boolean).join(" ");
}

/** What a schedule runs, with a link to its config. */
function Work({ of: schedule }: { of: Schedule }) {
  const { config_id } = schedule.trigger as { config_id?: string };
  return config_id ? <Link to={["configs", config_id]}>{workOf(schedule)}</Link> : <>{workOf(schedule)}</>;
}

function countOf(servers: number): string {
  return servers === 1 ? "1 server" : `${servers.toLocaleString("en")} servers`;
}

function rowOf(schedule: Schedule, plan: Plan, borders: readonly number[]): Row {
  const marks = marksOf(schedule, plan).filter((mark) => mark.at >= borders[0]! && mark.at < borders[DAYS]!);
  return {
    key: schedule.id,
    label: <Choice of={schedule} />,
    summary: `${schedule.name}, ${timesInWords(schedule)}: ${summarize(marks)}`,
    windows: plan.windows
      .filter((period) => period.schedule_id === schedule.id)
      .map(({ begin, end, servers }) => ({
        begin: parseTime(begin),
        end: parseTime(end),
        text: `Window of ${countOf(servers)}: ${momentOf(parseTime(begin))} to ${momentOf(parseTime(end))}`,
      })),
    marks,
  };
}

/** What a schedule has started, what it has missed last, and what it will start, by time. */
function marksOf(schedule: Schedule, plan: Plan): Mark[] {
  const started = plan.triggers.filter((trigger) => trigger.schedule_id === schedule.id);
  const past = started.map((trigger): Mark => {
    const at = parseTime(trigger.creation_time);
    return { at, tone: toneOf(trigger.status), text: `${momentOf(at)}: ${wordsOf(trigger.status)}, ${trigger.failed} of ${trigger.total} failed` };
  });
  const last = schedule.last_time ? parseTime(schedule.last_time) : null;
  const isMissed = last !== null && !started.some((trigger) => Math.abs(parseTime(trigger.creation_time) - last) <= LATE);
  if (isMissed && schedule.missed_count > 0) past.push({ at: last, tone: "warn", text: `${momentOf(last)}: missed` });
  const ahead = plan.times.filter((time) => time.schedule_id === schedule.id).map((time): Mark => {
    const at = parseTime(time.time);
    if (time.problem) return { at, tone: "bad", text: `${momentOf(at)}: ${time.problem}` };
    const text = `${momentOf(at)}: ${countOf(time.servers)}`;
    if (!time.waits_until) return { at, tone: "wait", text };
    const until = parseTime(time.waits_until);
    return { at, tone: "wait", until, text: `${text}, ${time.waiting} wait until ${momentOf(until)}` };
  });
  return [...past, ...ahead].sort((one, other) => one.at - other.at);
}

/** The schedule that the URL names: what it runs, and what one can do with it. */
function Chosen({ plan, reload }: { plan: Plan; reload: () => void }) {
  const schedule = plan.schedules.find((one) => one.id === query.value.get("schedule"));
  if (!schedule) return null;
  const names = { schedule_id: schedule.id };
  const path = "/v1/{project}/software_schedules/{schedule_id}";
  const runNow = async () => {
    const { software_trigger: trigger } = (await change("POST", `${path}/run`, names)) as { software_trigger: Trigger };
    navigate(["triggers", trigger.id]);
  };
  const pause = { label: "Pause", question: `${schedule.name} starts nothing until you resume it. Runs in progress continue.`, run: () => change("PATCH", path, names, { enabled: false }) };
  const resume = { label: "Resume", question: `${schedule.name} starts again at its next time.`, run: () => change("PATCH", path, names, { enabled: true }) };
  return (
    <Card
      title={schedule.name}
      aside={
        <div class="actions">
          <DialogButton label="Edit">{(close) => <ScheduleForm of={schedule} onDone={reload} onClose={close} />}</DialogButton>
          <Actions
            of={[
              { label: "Run now", question: `${workOf(schedule)} starts now, in addition to the times of ${schedule.name}.`, run: runNow },
              schedule.enabled ? pause : resume,
              { label: "Delete", question: `${schedule.name} is deleted. The triggers that it has started stay.`, isDangerous: true, run: () => change("DELETE", path, names) },
            ]}
            onDone={reload}
          />
        </div>
      }
    >
      <Facts
        of={[
          ["When", timesInWords(schedule)],
          ["Runs", <Work of={schedule} />],
          ["Cron", schedule.cron ? <span class="mono">{`${schedule.cron} (${schedule.timezone})`}</span> : undefined],
          ["Next", <Time at={schedule.next_time} none={schedule.enabled ? "never" : "paused"} />],
          ["Last", schedule.last_trigger_id ? <Link to={["triggers", schedule.last_trigger_id]}><Time at={schedule.last_time} /></Link> : <Time at={schedule.last_time} />],
          ["Started, missed", `${schedule.run_count}, ${schedule.missed_count}`],
          ["Times that pass while Stoker is down", schedule.misfire_policy === "RUN" ? "run once afterwards" : "are skipped"],
          ["Runs of earlier times that still wait", schedule.overlap_policy === "REPLACE" ? "are replaced" : "are kept"],
          ["Windows", schedule.require_window ? "each server waits for its maintenance window" : "as the servers' policies say"],
          ["By", schedule.requested_by],
          ["Problem", schedule.last_error ? <span class="bad">{schedule.last_error}</span> : undefined],
        ]}
      />
      <Value of={schedule.trigger} />
    </Card>
  );
}

function iso(time: number): string {
  return new Date(time).toISOString().replace(/\.\d+Z$/, "Z");
}
