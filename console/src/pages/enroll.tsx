import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { parseLabels } from "../model/targets";
import { durationOf, parseTime } from "../model/time";
import { now } from "../ui/clock";
import { Copied } from "../ui/copied";
import { useData } from "../ui/data";
import { Card, Empty, Head, Problem, State } from "../ui/parts";
import { Link } from "../ui/router";
import type { Server } from "../ui/servers";

type Enrollment = Schemas["ServerEnrollment"];
type Download = NonNullable<Schemas["NewServer"]["download"]>;

interface Options {
  kind: "one" | "many";
  name: string;
  limit: string;
  labels: string;
  approval: boolean;
  download: Download;
  hours: string;
  proxy: string;
  relay: string;
}

const FIRST: Options = { kind: "one", name: "", limit: "10", labels: "", approval: false, download: "python3", hours: "24", proxy: "", relay: "" };

/** An enrollment whose line is shown, and when it was made. */
interface Issued {
  enrollment: Enrollment;
  serverId: string | null;
  since: number;
}

/** Enrolls servers: options, the line to paste, and the machines as they arrive. */
export function EnrollPage(_: { names: string[] }) {
  const [options, setOptions] = useState(FIRST);
  const [issued, setIssued] = useState<Issued | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  if (!session.can_write) {
    return (
      <>
        <Head title="Enroll servers" />
        <Empty>
          Readers enroll no servers. <Link to={["servers"]}>See the servers</Link>
        </Empty>
      </>
    );
  }
  const create = async (event: Event) => {
    event.preventDefault();
    setError(null);
    try {
      setIssued(await enroll(options));
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError((problem as Error).message, 0, ""));
    }
  };
  return (
    <>
      <Head title="Enroll servers" />
      <div class="columns">
        <Card title="1. Options">
          <form class="stack" onSubmit={(event) => void create(event)}>
            <OptionFields options={options} onChange={setOptions} />
            {error && <Problem error={error} />}
            <div class="buttons">
              <button class="primary">{issued ? "Make another line" : "Make the line"}</button>
            </div>
          </form>
        </Card>
        {issued && (
          <div class="stack">
            <Card title="2. Paste this line on the machine, as root">
              {issued.enrollment.warning && <p class="banner">{issued.enrollment.warning}</p>}
              <Copied label="Line" text={issued.enrollment.command} />
              <p class="quiet">Keep it secret: with it, a machine becomes a server of this project. It is shown only here.</p>
            </Card>
            <Arrivals key={issued.enrollment.id} issued={issued} />
          </div>
        )}
      </div>
    </>
  );
}

function OptionFields({ options, onChange }: { options: Options; onChange: (next: Options) => void }) {
  const field = (name: "name" | "limit" | "labels" | "hours" | "proxy" | "relay", label: string, hint: string, isRequired = false) => (
    <label key={name}>
      {label}
      <input required={isRequired} placeholder={hint} value={options[name]} onInput={(event) => onChange({ ...options, [name]: event.currentTarget.value })} />
    </label>
  );
  return (
    <>
      <fieldset class="pills">
        <legend>Machines</legend>
        {(["one", "many"] as const).map((kind) => (
          <label key={kind} class="check">
            <input type="radio" name="kind" checked={options.kind === kind} onChange={() => onChange({ ...options, kind })} />{" "}
            {kind === "one" ? "one, with a name" : "several, with their host names"}
          </label>
        ))}
      </fieldset>
      {options.kind === "one" ? (
        field("name", "Name", "web1", true)
      ) : (
        <>
          {field("limit", "Machines at most", "10", true)}
          {field("labels", "Labels", "tier=web")}
          <label class="check">
            <input type="checkbox" checked={options.approval} onChange={(event) => onChange({ ...options, approval: event.currentTarget.checked })} />{" "}
            Each waits until somebody approves it
          </label>
        </>
      )}
      <label>
        Download with
        <select value={options.download} onChange={(event) => onChange({ ...options, download: event.currentTarget.value as Download })}>
          {(["python3", "curl", "wget"] as const).map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      </label>
      <details>
        <summary>More options</summary>
        <div class="stack">
          {field("hours", "Valid for, in hours", "24", true)}
          {field("proxy", "HTTP proxy of the machine", "http://proxy:3128")}
          {field("relay", "Relay", "its name, if the machine reaches Stoker through one")}
        </div>
      </details>
    </>
  );
}

/** Creates an enrollment. Throws ApiError, or an Error with a sentence. */
async function enroll(options: Options): Promise<Issued> {
  const hours = Number(options.hours);
  if (!(hours > 0)) throw new Error("The line is valid for a number of hours.");
  const common = {
    download: options.download,
    expires_in: Math.round(hours * 3600),
    ...(options.proxy.trim() ? { proxy: options.proxy.trim() } : {}),
    ...(options.relay.trim() ? { relay: options.relay.trim() } : {}),
  };
  const since = Date.now();
  if (options.kind === "one") {
    const body = { name: options.name.trim(), ...common };
    const answer = (await change("POST", "/v1/{project}/servers", {}, body)) as { server: Server; enrollment: Enrollment };
    return { enrollment: answer.enrollment, serverId: answer.server.id, since };
  }
  const labels = options.labels.trim() ? { labels: parseLabels(options.labels) } : {};
  const body = { limit: Number(options.limit), approval: options.approval, ...labels, ...common };
  const answer = (await change("POST", "/v1/{project}/enrollments", {}, body)) as { enrollment: Enrollment };
  return { enrollment: answer.enrollment, serverId: null, since };
}

/** The machines that arrive, looked for each second. */
function Arrivals({ issued }: { issued: Issued }) {
  const first = useRef(new Map<string, number>());
  const known = useRef<Set<string> | null>(null);
  const loaded = useData(
    `arrivals ${issued.enrollment.id}`,
    async (signal) => {
      if (issued.serverId) {
        const { server } = await get("/v1/{project}/servers/{server}", { server: issued.serverId }, {}, signal);
        return server.status === "ENROLLING" ? [] : [server];
      }
      // The newest servers: those of this enrollment are not there when its page opens.
      const { servers } = await get("/v1/{project}/servers", {}, { sort: "-created_at", limit: 100 }, signal);
      known.current ??= new Set(servers.filter((server) => parseTime(server.created_at) < issued.since - 1000).map((server) => server.id));
      return servers.filter((server) => !known.current!.has(server.id));
    },
    1,
  );
  const servers = loaded.data ?? [];
  useEffect(() => {
    for (const server of servers) {
      if (server.last_seen && !first.current.has(server.id)) first.current.set(server.id, loaded.at);
    }
  }, [loaded.at]);
  return (
    <Card title="3. Machines">
      {servers.length === 0 && (
        <p class="quiet" role="status">
          Waiting for {issued.serverId ? "the machine" : "the first machine"}, {durationOf(now.value - issued.since)} so far …
        </p>
      )}
      <ul class="rows" aria-live="polite">
        {servers.map((server) => (
          <li key={server.id}>
            <span class="row-name">
              <Link to={["servers", server.id]}>{server.name}</Link>
            </span>
            <span class="row-text">
              {server.status === "PENDING_APPROVAL" ? (
                <>
                  <State of={server.status} /> – <Link to={["servers", server.id]}>approve it</Link>
                </>
              ) : (
                <span class={`state ${server.last_seen ? "good" : "busy"}`}>
                  <span class="symbol" aria-hidden="true">
                    {server.last_seen ? "✓" : "◐"}
                  </span>
                  {server.last_seen ? `connected, ${durationOf((first.current.get(server.id) ?? loaded.at) - issued.since)}` : "has enrolled, and connects"}
                </span>
              )}
            </span>
            {server.last_seen && (
              <Link to={["run"]} with={{ servers: server.name }}>
                Run a command
              </Link>
            )}
          </li>
        ))}
      </ul>
    </Card>
  );
}
