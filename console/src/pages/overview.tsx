import { get, type Schemas } from "../api/client";
import { stripLine } from "../model/ansi";
import { cronInWords } from "../model/cron";
import { SYMBOLS, type Tone } from "../model/state";
import { parseTime } from "../model/time";
import { useData } from "../ui/data";
import { Card, Count, Data, Empty, Head, Row, State } from "../ui/parts";
import { Link } from "../ui/router";
import { DayLine } from "../views/week";

type Overview = Schemas["OverviewState"];
type Highlight = Schemas["Highlight"];
type Count = keyof Schemas["Overview"];

/** The numbers in their order, each with its look, its words, and the page that lists exactly what it counts. */
const TILES: readonly { name: Count; tone: Tone; label: string; page: string; filter?: Record<string, string> }[] = [
  { name: "online_servers", tone: "good", label: "servers online", page: "servers" },
  { name: "offline_servers", tone: "bad", label: "servers offline", page: "servers" },
  { name: "unapproved_servers", tone: "warn", label: "servers waiting for approval", page: "servers" },
  { name: "outdated_agents", tone: "warn", label: "outdated agents", page: "servers", filter: { outdated: "1" } },
  { name: "running_stacks", tone: "busy", label: "stacks in progress", page: "stacks" },
  { name: "failed_stacks", tone: "bad", label: "failed stacks", page: "stacks" },
  { name: "running_triggers", tone: "busy", label: "triggers in progress", page: "triggers" },
  { name: "failed_triggers", tone: "bad", label: "triggers failed since yesterday", page: "triggers" },
  { name: "failed_deployments", tone: "bad", label: "deployments failed since yesterday", page: "runs" },
  { name: "drifted_deployments", tone: "bad", label: "drifted deployments", page: "drift" },
  { name: "schedules_of_next_day", tone: "wait", label: "schedules due within a day", page: "schedules" },
];

/** The state of the project: what runs, what failed, and what waits for somebody. Each number leads to its list. */
export function OverviewPage() {
  const overview = useData<Overview>(
    "overview",
    (signal) => get("/v1/{project}/overview", {}, {}, signal),
    ["overview"],
    (name, data) => (name === "overview" ? (data as Overview) : null),
  );
  return (
    <>
      <Head title="Overview" />
      <Data of={overview}>
        {({ overview: counts, highlights }) => (
          <>
            <div class="tiles">
              {TILES.map((tile) => (
                <Tile key={tile.name} {...tile} tally={counts[tile.name]} />
              ))}
            </div>
            <div class="columns">
              <Highlights
                title="Running and failed"
                of={highlights.filter(({ kind }) => kind !== "check" && kind !== "schedule")}
                empty="Nothing is running, and nothing has failed."
              />
              <Highlights
                title="Drift"
                of={highlights.filter(({ kind }) => kind === "check")}
                empty="No server is known to differ from its deployments."
              />
              <Highlights
                title="Next schedules"
                of={highlights.filter(({ kind }) => kind === "schedule")}
                empty="No schedule is due within a day."
              />
            </div>
          </>
        )}
      </Data>
    </>
  );
}

interface TileProps {
  page: string;
  /** The parameters of the page; by default those of the API's list. */
  filter?: Record<string, string>;
  tally: { count: number; path: string };
  tone: Tone;
  label: string;
}

function Tile({ page, filter, tally, tone, label }: TileProps) {
  const shown = tally.count === 0 ? "off" : tone;
  const parameters = filter ?? Object.fromEntries(new URLSearchParams(tally.path.split("?")[1] ?? ""));
  return (
    <Link to={[page]} with={parameters} class={`tile ${shown}`}>
      <Count of={tally.count} symbol={SYMBOLS[shown]} label={label} />
    </Link>
  );
}

function Highlights({ title, of: highlights, empty }: { title: string; of: readonly Highlight[]; empty: string }) {
  const due = highlights.filter(({ kind, time }) => kind === "schedule" && time);
  return (
    <Card title={title}>
      {due.length > 0 && <DayLine marks={due.map((one) => ({ at: parseTime(one.time!), tone: "wait", text: one.name }))} />}
      {highlights.length === 0 ? (
        <Empty>{empty}</Empty>
      ) : (
        <ul class="rows">
          {highlights.map((one) => (
            <Row
              key={`${one.kind} ${one.id}`}
              name={<Link {...pageOf(one)}>{one.name}</Link>}
              time={one.time}
              detail={one.kind !== "schedule" ? stripLine(one.text) : ""}
            >
              {one.kind === "schedule" ? (cronInWords(one.text) ?? one.text) : <State of={one.status} />}
            </Row>
          ))}
        </ul>
      )}
    </Card>
  );
}

function pageOf({ kind, id, name }: Highlight): { to: string[]; with?: Record<string, string> } {
  if (kind === "stack") return { to: ["stacks", name, id] };
  if (kind === "trigger") return { to: ["triggers", id] };
  if (kind === "server") return { to: ["servers", id] };
  if (kind === "schedule") return { to: ["schedules"], with: { schedule: id } };
  return { to: ["runs", id] };
}
