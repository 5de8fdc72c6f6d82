import { useEffect, useRef, useState } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { parseLabels } from "../model/targets";
import { durationOf, parseTime } from "../model/time";
import { Copied } from "../ui/copy";
import { useData } from "../ui/data";
import { CheckField, ChoiceField, Form, textOf, TextField } from "../ui/form";
import { Card, Head, now, State } from "../ui/parts";
import { Link } from "../ui/router";
import type { Server } from "../ui/servers";

type Enrollment = Schemas["ServerEnrollment"];
type Download = NonNullable<Schemas["NewServer"]["download"]>;

/** An enrollment whose command is shown, and when it was created. */
interface Issued {
  enrollment: Enrollment;
  serverId: string | null;
  since: number;
}

/** Enrolls servers: options, the command to paste, and the machines as they arrive. */
export function EnrollPage(_: { names: string[] }) {
  const [issued, setIssued] = useState<Issued | null>(null);
  return (
    <>
      <Head title="Enroll servers" />
      <div class="columns">
        <Card title="1. Options">
          <Form label={issued ? "Create another command" : "Create the command"} submit={async (values) => setIssued(await enroll(values))}>
            <OptionFields />
          </Form>
        </Card>
        {issued && (
          <div class="stack">
            <Card title="2. Paste this command on the machine, as root">
              {issued.enrollment.warning && <p class="banner">{issued.enrollment.warning}</p>}
              <Copied label="Command" text={issued.enrollment.command} />
              <p class="quiet">Keep this command secret: with it, a machine becomes a server of this project. It is shown only once.</p>
            </Card>
            <Arrivals key={issued.enrollment.id} issued={issued} />
          </div>
        )}
      </div>
    </>
  );
}

function OptionFields() {
  const [kind, setKind] = useState("one");
  return (
    <>
      <fieldset class="pills">
        <legend>Machines</legend>
        {(["one", "many"] as const).map((one) => (
          <label key={one} class="check">
            <input type="radio" name="kind" value={one} checked={kind === one} onChange={() => setKind(one)} />
            {one === "one" ? "one, with a name" : "several, named by their host names"}
          </label>
        ))}
      </fieldset>
      {kind === "one" ? (
        <TextField name="name" label="Name" placeholder="web1" isRequired />
      ) : (
        <>
          <TextField name="limit" label="Maximum number of machines" value="10" isRequired />
          <TextField name="labels" label="Labels" placeholder="tier=web" />
          <CheckField name="approval" label="Each machine waits for approval" />
        </>
      )}
      <ChoiceField name="download" label="Download with" choices={(["python3", "curl", "wget"] satisfies Download[]).map((one) => [one, one] as const)} />
      <details>
        <summary>More options</summary>
        <div class="stack">
          <TextField name="hours" label="Valid for (hours)" value="24" isRequired />
          <TextField name="proxy" label="HTTP proxy of the machine" placeholder="http://proxy:3128" />
          <TextField name="relay" label="Relay" placeholder="site1" hint="Its name, if the machine reaches Stoker through a relay" />
        </div>
      </details>
    </>
  );
}

/** Creates the enrollment that a form describes. Throws ApiError, or an Error with a sentence. */
async function enroll(values: FormData): Promise<Issued> {
  const hours = Number(values.get("hours"));
  if (!(hours > 0)) throw new Error("“Valid for” is a number of hours.");
  const common = {
    download: textOf(values, "download"),
    expires_in: Math.round(hours * 3600),
    proxy: textOf(values, "proxy"),
    relay: textOf(values, "relay"),
  };
  const since = Date.now();
  if (values.get("kind") === "one") {
    const body = { name: textOf(values, "name"), ...common };
    const answer = (await change("POST", "/v1/{project}/servers", {}, body)) as { server: Server; enrollment: Enrollment };
    return { enrollment: answer.enrollment, serverId: answer.server.id, since };
  }
  const labels = textOf(values, "labels");
  const body = {
    limit: Number(values.get("limit")),
    approval: values.get("approval") === "on",
    ...(labels ? { labels: parseLabels(labels) } : {}),
    ...common,
  };
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
                  {server.last_seen ? `connected, ${durationOf((first.current.get(server.id) ?? loaded.at) - issued.since)}` : "enrolled, connecting"}
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
