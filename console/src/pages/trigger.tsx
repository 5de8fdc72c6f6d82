import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { type ApiError, change, get, type Schemas, url } from "../api/client";
import { follow } from "../api/stream";
import { groupBy } from "../model/groups";
import { addSample, canariesOf, rateOf, type Sample } from "../model/rollout";
import { durationOf } from "../model/time";
import { type Action, Actions } from "../ui/actions";
import { StateFilter, TextFilter } from "../ui/filters";
import { Data, Duration, Facts, Head, State, Time } from "../ui/parts";
import { Link, navigate, query } from "../ui/router";
import { type Column, Table } from "../ui/table";
import { type Loaded, useConnection } from "../ui/data";
import { Matrix } from "../views/matrix";
import { endedOf, Progress } from "../views/progress";
import { OutputGroups } from "./trigger_output";

type Trigger = Schemas["SoftwareTrigger"];
type Target = Schemas["CompactTarget"];

/** Milliseconds for which events are collected before the page shows them. */
const PAUSE = 100;
/** Targets of one response. */
const PAGE = 10_000;
/** The order of states: what needs somebody comes first. */
const ORDER = ["FAILED", "IN_PROGRESS", "QUEUED", "CANCELLED", "COMPLETE"];

const COLUMNS: Column<Target>[] = [
  { title: "Server", cell: (target) => <TargetLink target={target} />, sort: (target) => target.server_name },
  { title: "State", cell: (target) => <State of={stateOf(target)} />, sort: (target) => ORDER.indexOf(target.status) },
  { title: "Exit code", cell: (target) => target.exit_code ?? "", sort: (target) => Number(target.exit_code ?? -1), isNumber: true },
  { title: "Changed", cell: (target) => (target.changed === null ? "" : target.changed ? "yes" : "no"), isWide: true },
  { title: "Since", cell: (target) => <Time at={target.updated_time} none="" />, isWide: true },
];

function TargetLink({ target }: { target: Target }) {
  const page = pageOf(target);
  return page ? <Link to={page}>{target.server_name}</Link> : <>{target.server_name}</>;
}

/** Returns the state of the run while the target is in progress, such as queued or running. */
function stateOf(target: Target): string {
  return target.state ?? target.status;
}

function pageOf(target: Target): string[] | null {
  return target.deployment_id ? ["runs", target.deployment_id] : null;
}

interface Live {
  trigger: Trigger;
  targets: readonly Target[];
}

/** Reads a trigger and its targets, and follows their states while it runs. Many events make one change of the page. */
function useTrigger(id: string): Loaded<Live> {
  const [live, setLive] = useState<Live | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [connection, setConnection] = useConnection();
  const [round, setRound] = useState(0);

  useEffect(() => {
    const controller = new AbortController();
    let close = () => {};
    let timer = 0;
    setLive(null);
    setError(null);
    const open = async () => {
      const names = { trigger_id: id };
      const path = "/v1/{project}/software_triggers/{trigger_id}";
      // First the trigger: the targets of one that has ended change no more.
      let { software_trigger: trigger } = await get(path, names, { targets: false }, controller.signal);
      const page = (marker?: number) => get(`${path}/targets/compact`, names, { marker }, controller.signal);
      // The stream continues the first page, so changes of the others are not lost.
      const { targets: all, cursor } = await page();
      while (all.length > 0 && all.length % PAGE === 0 && all.length < trigger.total) all.push(...(await page(all.at(-1)!.position)).targets);
      const targets = new Map(all.map((target) => [target.position, target]));
      const show = () => {
        timer = 0;
        setLive({ trigger, targets: [...targets.values()] });
      };
      const onEvent = (name: string, data: unknown) => {
        if (name === "state") targets.set((data as Target).position, data as Target);
        else if (name === "trigger" || name === "end") trigger = data as Trigger;
        else return;
        timer ||= window.setTimeout(show, PAUSE);
      };
      show();
      const events = url("/v1/{project}/events", {}, { subject: `trigger:${id}`, events: ["state", "trigger"] });
      if (trigger.status === "IN_PROGRESS") close = follow(events, onEvent, setConnection, cursor);
      else setConnection("ended");
    };
    open().catch((problem: unknown) => {
      if (!controller.signal.aborted) setError(problem as ApiError);
    });
    return () => {
      controller.abort();
      clearTimeout(timer);
      close();
    };
  }, [id, round]);
  const reload = () => setRound((last) => last + 1);
  return { data: live, error, isStale: false, at: connection.since, reload, live: connection };
}

/** One trigger: its progress, a cell for each server, and the servers as a table, failures first. */
export function TriggerPage({ names: [id = ""] }: { names: string[] }) {
  const loaded = useTrigger(id);
  const trigger = loaded.data?.trigger;
  return (
    <>
      <Head title={trigger?.name ?? id} kind="Trigger">
        {trigger && <Actions of={actionsOf(trigger)} onDone={loaded.reload} />}
      </Head>
      <Data of={loaded}>
        {(live) => (
          <>
            <Rollout trigger={live.trigger} />
            <Facts of={factsOf(live.trigger)} />
            <Targets trigger={live.trigger} targets={live.targets} />
          </>
        )}
      </Data>
    </>
  );
}

function factsOf(trigger: Trigger) {
  return [
    ["State", <State of={trigger.status} />],
    ["Reason", trigger.status_reason || undefined],
    ["By", trigger.requested_by],
    ["Duration", <Duration from={trigger.creation_time} to={trigger.end_time} />],
    ["Changed", trigger.changed + trigger.unchanged === 0 ? undefined : `${trigger.changed} changed, ${trigger.unchanged} unchanged`],
    ["At a time", trigger.max_concurrent === null ? "all" : `${trigger.max_concurrent}`],
    ["Canary", trigger.canary === null ? undefined : `${trigger.canary}`],
    ["Id", <span class="mono">{trigger.id}</span>],
  ] as const;
}

/** How many runs have ended, how fast, and when the rest will have. */
function Rollout({ trigger }: { trigger: Trigger }) {
  const ended = endedOf(trigger);
  const samples = useRef<Sample[]>([]);
  useEffect(() => {
    samples.current = addSample(samples.current, { time: Date.now(), ended });
  }, [ended]);
  return (
    <div>
      <p class="progress-text">
        <b>
          {ended.toLocaleString("en")} of {trigger.total.toLocaleString("en")}
        </b>{" "}
        {trigger.total === 1 ? "run has" : "runs have"} ended
        {trigger.status === "IN_PROGRESS" && describeRate(samples.current, trigger.total - ended)}
      </p>
      <Progress of={trigger} />
    </div>
  );
}

/** Returns the rate of the last minute, and the time that the rest takes at this rate. */
function describeRate(samples: readonly Sample[], rest: number): string {
  const rate = rateOf(samples);
  if (rate === null) return "";
  return `, ${rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en")} a minute, about ${durationOf((rest / rate) * 60_000)} left`;
}

function Targets({ trigger, targets }: Live) {
  const status = query.value.get("status") ?? "";
  const name = (query.value.get("name") ?? "").toLowerCase();
  const canaries = useMemo(() => canariesOf(targets, trigger.canary), [targets.length, trigger.canary]);
  const matching = name ? targets.filter((target) => target.server_name.toLowerCase().includes(name)) : targets;
  const groups = groupBy(matching, (target) => target.status);
  const shown = (status ? [status] : ORDER).flatMap((state) => groups.get(state) ?? []);
  const open = (target: Target) => {
    const page = pageOf(target);
    if (page) navigate(page);
  };
  return (
    <>
      <div class="filters">
        <TextFilter name="name" label="Server" hint="part of a name" />
        <StateFilter counts={new Map([...groups].map(([state, group]) => [state, group.length]))} />
      </div>
      <Matrix targets={shown} canaries={canaries} onOpen={open} />
      <OutputGroups trigger={trigger} status={status} name={name} />
      <Table
        label="Servers of the trigger"
        rows={shown}
        columns={COLUMNS}
        keyOf={(target) => `${target.position}`}
        empty="No server matches these filters."
      />
    </>
  );
}

function actionsOf(trigger: Trigger): Action[] {
  const names = { trigger_id: trigger.id };
  if (trigger.status === "IN_PROGRESS") {
    return [
      {
        label: "Cancel",
        question: "No more servers start. Runs that have started are stopped.",
        isDangerous: true,
        run: () => change("POST", "/v1/{project}/software_triggers/{trigger_id}/cancel", names, {}),
      },
    ];
  }
  const failures = trigger.failed + trigger.cancelled;
  if (failures === 0) return [];
  return [
    {
      label: "Retry failed",
      question: `A new trigger repeats the run on ${failures === 1 ? "the server" : `the ${failures.toLocaleString("en")} servers`} where it failed or was cancelled.`,
      run: async () => {
        const answer = await change("POST", "/v1/{project}/software_triggers/{trigger_id}/retry", names, { only_failed: true });
        navigate(["triggers", (answer as { software_trigger: Trigger }).software_trigger.id]);
      },
    },
  ];
}
