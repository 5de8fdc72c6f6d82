import type { ComponentChildren } from "preact";
import { get, type Schemas } from "../api/client";
import { SYMBOLS, wordsOf, type Tone } from "../model/state";
import { loadAll, useData } from "../ui/data";
import { Card, Data, Empty, Head, State, Time } from "../ui/parts";
import { Link } from "../ui/router";

type Server = Schemas["ShownServer"];
type Stack = Schemas["StackSummary"];
type Trigger = Schemas["SoftwareTrigger"];
type Check = Schemas["ShownCheck"];
type Schedule = Schemas["SoftwareSchedule"];

interface Site {
  servers: Server[];
  stacks: Stack[];
  triggers: Trigger[];
  checks: Check[];
  schedules: Schedule[];
}

/** Rows of a list; the page of the list has all. */
const MOST = 8;

async function load(signal: AbortSignal): Promise<Site> {
  const [servers, stacks, triggers, checks, schedules] = await Promise.all([
    loadServers(signal),
    get("/v1/{project}/stacks", {}, {}, signal),
    get("/v1/{project}/software_triggers", {}, { limit: 200 }, signal),
    get("/v1/{project}/checks", {}, { state: "DRIFTED" }, signal),
    get("/v1/{project}/software_schedules", {}, {}, signal),
  ]);
  return {
    servers,
    stacks: stacks.stacks,
    triggers: triggers.software_triggers,
    checks: checks.checks,
    schedules: schedules.software_schedules,
  };
}

/** Reads all servers that a selector and a name select. */
export function loadServers(signal: AbortSignal, selector = "", name = ""): Promise<Server[]> {
  const filters = { ...(selector ? { selector } : {}), ...(name ? { name: [name] } : {}), limit: 1000 };
  return loadAll(
    async (marker) => (await get("/v1/{project}/servers", {}, { ...filters, ...(marker ? { marker } : {}) }, signal)).servers,
    (server) => server.id,
    1000,
  );
}

/** The state of the project: what runs, what failed, and what waits for somebody. Each number leads to its list. */
export function OverviewPage() {
  const site = useData("overview", load, 10);
  return (
    <>
      <Head title="Overview" />
      <Data of={site}>{(data) => <Overview site={data} />}</Data>
    </>
  );
}

function Overview({ site }: { site: Site }) {
  const servers = (status: string) => site.servers.filter((server) => server.status === status).length;
  const stacks = (end: string) => site.stacks.filter((stack) => stack.stack_status.endsWith(end)).length;
  const triggers = (status: string) => site.triggers.filter((trigger) => trigger.status === status).length;
  const outdated = site.servers.filter((server) => server.agent_outdated).length;
  return (
    <>
      <div class="tiles">
        <Tile to="servers" count={servers("ONLINE")} tone="good" label="servers online" filter={{ status: "ONLINE" }} />
        <Tile to="servers" count={servers("OFFLINE")} tone="bad" label="servers offline" filter={{ status: "OFFLINE" }} />
        <Tile
          to="servers"
          count={servers("PENDING_APPROVAL")}
          tone="warn"
          label="servers wait for approval"
          filter={{ status: "PENDING_APPROVAL" }}
        />
        <Tile to="servers" count={outdated} tone="warn" label="outdated agents" filter={{ outdated: "1" }} />
        <Tile to="stacks" count={stacks("_FAILED")} tone="bad" label="failed stacks" filter={{ status: "FAILED" }} />
        <Tile to="stacks" count={stacks("_IN_PROGRESS")} tone="busy" label="stacks in progress" filter={{ status: "IN_PROGRESS" }} />
        <Tile to="triggers" count={triggers("IN_PROGRESS")} tone="busy" label="triggers in progress" filter={{ status: "IN_PROGRESS" }} />
        <Tile to="triggers" count={triggers("FAILED")} tone="bad" label="failed triggers" filter={{ status: "FAILED" }} />
      </div>
      <div class="columns">
        <Attention site={site} />
        <Drift checks={site.checks} />
        <Schedules schedules={site.schedules} />
      </div>
    </>
  );
}

function Tile(props: { to: string; filter: Record<string, string>; count: number; tone: Tone; label: string }) {
  const tone = props.count === 0 ? "off" : props.tone;
  return (
    <Link to={[props.to]} with={props.filter} class={`tile ${tone}`}>
      <span class="tile-count">
        <span class="symbol" aria-hidden="true">
          {SYMBOLS[tone]}
        </span>
        {props.count.toLocaleString("en")}
      </span>
      <span class="tile-label">{props.label}</span>
    </Link>
  );
}

/** A line of a list: a link, what happened, and when. */
function Row({ children, text, at }: { children: ComponentChildren; text: ComponentChildren; at?: string | null }) {
  return (
    <li>
      <span class="row-name">{children}</span>
      <span class="row-text">{text}</span>
      {at !== undefined && (
        <span class="row-time">
          <Time at={at} />
        </span>
      )}
    </li>
  );
}

function Attention({ site }: { site: Site }) {
  const rows = [
    ...site.stacks
      .filter((stack) => /_(FAILED|IN_PROGRESS)$/.test(stack.stack_status))
      .map((stack) => ({
        key: stack.id,
        isOver: stack.stack_status.endsWith("_FAILED"),
        link: <Link to={["stacks", stack.stack_name, stack.id]}>{stack.stack_name}</Link>,
        text: <State of={stack.stack_status} />,
        at: stack.updated_time ?? stack.creation_time,
      })),
    ...site.triggers
      .filter((trigger) => trigger.status === "FAILED" || trigger.status === "IN_PROGRESS")
      .map((trigger) => ({
        key: trigger.id,
        isOver: trigger.status === "FAILED",
        link: <Link to={["triggers", trigger.id]}>{trigger.name}</Link>,
        text: <State of={trigger.status} />,
        at: trigger.end_time ?? trigger.creation_time,
      })),
    ...site.servers
      .filter((server) => server.problem)
      .map((server) => ({
        key: server.id,
        isOver: true,
        link: <Link to={["servers", server.id]}>{server.name}</Link>,
        text: <span class="state bad">{server.problem}</span>,
        at: server.last_seen,
      })),
  ];
  rows.sort((one, other) => Number(one.isOver) - Number(other.isOver) || (other.at ?? "").localeCompare(one.at ?? ""));
  return (
    <Card title="Running and failed">
      {rows.length === 0 ? (
        <Empty>Nothing runs, and nothing has failed.</Empty>
      ) : (
        <ul class="rows">
          {rows.slice(0, MOST).map((row) => (
            <Row key={row.key} text={row.text} at={row.at}>
              {row.link}
            </Row>
          ))}
        </ul>
      )}
      {rows.length > MOST && <p class="quiet">{rows.length - MOST} more in the lists of stacks and triggers.</p>}
    </Card>
  );
}

function Drift({ checks }: { checks: readonly Check[] }) {
  return (
    <Card title="Drift">
      {checks.length === 0 ? (
        <Empty>No server is known to differ from its deployments.</Empty>
      ) : (
        <ul class="rows">
          {checks.slice(0, MOST).map((check) => (
            <Row key={check.deployment_id} text={check.summary || wordsOf(check.state)} at={check.since}>
              <Link to={["runs", check.deployment_id]}>{check.server_name ?? check.server_id}</Link>
            </Row>
          ))}
        </ul>
      )}
      {checks.length > MOST && (
        <p>
          <Link to={["drift"]} with={{ state: "DRIFTED" }}>
            All {checks.length} deployments that differ
          </Link>
        </p>
      )}
    </Card>
  );
}

function Schedules({ schedules }: { schedules: readonly Schedule[] }) {
  const next = schedules
    .filter((schedule) => schedule.enabled && schedule.next_time)
    .sort((one, other) => (one.next_time ?? "").localeCompare(other.next_time ?? ""));
  return (
    <Card title="Next schedules">
      {next.length === 0 ? (
        <Empty>
          No schedule is due. <code>stoker schedule create</code> creates one.
        </Empty>
      ) : (
        <ul class="rows">
          {next.slice(0, MOST).map((schedule) => (
            <Row key={schedule.id} text={schedule.cron ?? "once"} at={schedule.next_time}>
              {schedule.name}
            </Row>
          ))}
        </ul>
      )}
    </Card>
  );
}
