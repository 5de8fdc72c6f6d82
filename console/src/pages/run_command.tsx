import { useState } from "preact/hooks";
import { ApiError, change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { parseCanary, splitNames } from "../model/targets";
import { Empty, Head, Problem } from "../ui/parts";
import { hrefOf, Link, navigate, query, setQuery } from "../ui/router";
import { SelectorField } from "../ui/selector";
import { type Content, ContentFields, KINDS, toContent, useContent } from "./run_content";
import { TargetPreview, useTargets } from "./run_targets";

/** The rollout of a trigger, as texts of the form. */
interface Rollout {
  name: string;
  timeout: string;
  canary: string;
  max_concurrent: string;
  max_fail_percentage: string;
  require_window: boolean;
}

const NO_ROLLOUT: Rollout = { name: "", timeout: "", canary: "", max_concurrent: "", max_fail_percentage: "", require_window: false };

/** Runs a command, a config or an entry of the catalog on chosen servers, after a preview of them. */
export function RunCommandPage(_: { names: string[] }) {
  const what = query.value.get("what") ?? "";
  const content = useContent(what);
  const [rollout, setRollout] = useState(NO_ROLLOUT);
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const targets = useTargets(content.group, rollout.require_window);
  const chosen = targets.data?.filter(({ verdict }) => verdict.when !== "out").map(({ server }) => server.id) ?? [];
  const start = async (event: Event) => {
    event.preventDefault();
    setRunning(true);
    setError(null);
    try {
      navigate(hrefOf(["triggers", await createTrigger(toContent(what, content), rollout, chosen)]));
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError((problem as Error).message, 0, ""));
      setRunning(false);
    }
  };
  if (!session.can_write) {
    return (
      <>
        <Head title="Run" />
        <Empty>
          Readers start no runs. <Link to={["triggers"]}>See what has run</Link>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Head title={KINDS[what]?.title ?? "Run a command"} />
      <div class="pills" role="group" aria-label="What to run">
        {Object.entries(KINDS).map(([kind, { title }]) => (
          <button key={kind} class="pill" aria-pressed={kind === what} onClick={() => setQuery({ what: kind, config: "", entry: "" })}>
            {title}
          </button>
        ))}
      </div>
      <form class="run-form" onSubmit={(event) => void start(event)}>
        <div class="columns">
          <section class="card" aria-labelledby="run-what">
            <h2 id="run-what">What</h2>
            <ContentFields what={what} content={content} />
          </section>
          <section class="card" aria-labelledby="run-where">
            <h2 id="run-where">Where</h2>
            <Where />
            <TargetPreview targets={targets} />
          </section>
          <section class="card" aria-labelledby="run-how">
            <h2 id="run-how">How</h2>
            <RolloutFields rollout={rollout} onChange={setRollout} hasTimeout={what !== "upgrade"} />
          </section>
        </div>
        {error && <Problem error={error} />}
        <div class="buttons">
          <button class="primary" disabled={isRunning || chosen.length === 0}>
            {isRunning ? "Starting …" : chosen.length === 1 ? "Run on 1 server" : `Run on ${chosen.length.toLocaleString("en")} servers`}
          </button>
        </div>
      </form>
    </>
  );
}

function Where() {
  const names = query.value.get("servers") ?? "";
  return (
    <>
      <label class="field">
        <span>Servers</span>
        <textarea
          class="text-filter"
          rows={2}
          placeholder="web1 web2 db*"
          value={names}
          onChange={(event) => setQuery({ servers: splitNames(event.currentTarget.value).length > 0 ? event.currentTarget.value.trim() : "" })}
        />
        <span class="quiet">Names or patterns, with blanks between them. Together with a selector, both must match.</span>
      </label>
      <SelectorField value={query.value.get("selector") ?? ""} onChange={(selector) => setQuery({ selector })} />
    </>
  );
}

function RolloutFields({ rollout, onChange, hasTimeout }: { rollout: Rollout; onChange: (next: Rollout) => void; hasTimeout: boolean }) {
  const field = (name: Exclude<keyof Rollout, "require_window">, label: string, hint: string, help: string) => (
    <label class="field" key={name}>
      <span>{label}</span>
      <input value={rollout[name]} placeholder={hint} onInput={(event) => onChange({ ...rollout, [name]: event.currentTarget.value })} />
      <span class="quiet">{help}</span>
    </label>
  );
  return (
    <>
      {field("canary", "Canary", "1 or 10%", "Begin on so many servers; on the others when these have succeeded.")}
      {field("max_concurrent", "At a time", "all", "Servers at the same time, at most.")}
      {field("max_fail_percentage", "Fail limit in %", "100", "Begin on no more servers when a larger share has failed.")}
      {hasTimeout && field("timeout", "Timeout in seconds", "none", "Kill a run that takes longer.")}
      {field("name", "Name", "run", "How the trigger is called in lists.")}
      <label class="check">
        <input
          type="checkbox"
          checked={rollout.require_window}
          onChange={(event) => onChange({ ...rollout, require_window: event.currentTarget.checked })}
        />{" "}
        Only in each server’s maintenance window
      </label>
    </>
  );
}

/** Starts a trigger, and returns its id. A config that was made for it is deleted if it does not start. */
async function createTrigger(content: Content, rollout: Rollout, servers: string[]): Promise<string> {
  const canary = parseCanary(rollout.canary);
  const limits = {
    ...(canary === null ? {} : { canary }),
    ...numberOf("max_concurrent", rollout.max_concurrent, "At a time"),
    ...numberOf("max_fail_percentage", rollout.max_fail_percentage, "The fail limit"),
    ...numberOf("timeout", rollout.timeout, "The timeout"),
    ...(rollout.require_window ? { require_window: true } : {}),
  };
  const { id, isNew } = await findConfig(content, rollout.name.trim());
  const body = {
    config_id: id,
    servers,
    name: rollout.name.trim() || content.name,
    input_values: content.values,
    ...(content.action ? { action: content.action } : {}),
    ...limits,
  };
  try {
    const answer = (await change("POST", "/v1/{project}/software_triggers", {}, body)) as { software_trigger: Schemas["SoftwareTrigger"] };
    return answer.software_trigger.id;
  } catch (problem) {
    if (isNew) await change("DELETE", "/v1/{project}/software_configs/{config_id}", { config_id: id }).catch(() => undefined);
    throw problem;
  }
}

/** Returns the config to run: an existing one, the present one of the upgrades, or a new one. */
async function findConfig(content: Content, name: string): Promise<{ id: string; isNew: boolean }> {
  if (content.config_id) return { id: content.config_id, isNew: false };
  if (content.body.group === "agent") {
    const { software_configs: all } = await get("/v1/{project}/software_configs", {}, { derived: false });
    const present = all.find((config) => config.group === "agent" && config.name === content.name);
    if (present) return { id: present.id, isNew: false };
  }
  const body = { name: name || content.name, ...content.body };
  const answer = (await change("POST", "/v1/{project}/software_configs", {}, body)) as { software_config: { id: string } };
  return { id: answer.software_config.id, isNew: true };
}

function numberOf(key: string, text: string, label: string): Record<string, number> {
  if (text.trim() === "") return {};
  if (!/^\d+$/.test(text.trim())) throw new Error(`${label} is a number, not “${text}”.`);
  return { [key]: Number(text) };
}
