import { useState } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { session } from "../api/session";
import { parseCanary, splitNames } from "../model/targets";
import { Pills } from "../ui/filters";
import { CheckField, Form, textOf, TextField } from "../ui/form";
import { Card, Empty, Head } from "../ui/parts";
import { hrefOf, Link, navigate, query, setQuery } from "../ui/router";
import { SelectorField } from "../ui/selector";
import { type Content, ContentFields, KINDS, toContent, useContent } from "./run_content";
import { TargetPreview, useTargets } from "./run_targets";

/** Runs a command, a config or an entry of the catalog on chosen servers, after a preview of them. */
export function RunCommandPage(_: { names: string[] }) {
  const what = query.value.get("what") ?? "";
  const content = useContent(what);
  const [requiresWindow, setRequiresWindow] = useState(false);
  const targets = useTargets(content.group, requiresWindow);
  const chosen = targets.data?.filter(({ verdict }) => verdict.when !== "out").map(({ server }) => server.id) ?? [];
  const start = async (values: FormData) => {
    navigate(hrefOf(["triggers", await createTrigger(toContent(what, content, values), values, chosen)]));
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
      <Pills name="what" label="What to run" clears={["config", "entry"]} of={Object.entries(KINDS).map(([value, { title }]) => ({ value, text: title }))} />
      <Form class="run-form" label={labelOf(chosen.length)} isDisabled={chosen.length === 0} submit={start}>
        <div class="columns">
          <Card title="What">
            <ContentFields what={what} content={content} />
          </Card>
          <Card title="Where">
            <Where />
            <TargetPreview targets={targets} />
          </Card>
          <Card title="How">
            <RolloutFields onWindow={setRequiresWindow} hasTimeout={what !== "upgrade"} />
          </Card>
        </div>
      </Form>
    </>
  );
}

function labelOf(count: number): string {
  return count === 1 ? "Run on 1 server" : `Run on ${count.toLocaleString("en")} servers`;
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

function RolloutFields({ onWindow, hasTimeout }: { onWindow: (isRequired: boolean) => void; hasTimeout: boolean }) {
  return (
    <>
      <TextField name="canary" label="Canary" placeholder="1 or 10%" hint="Begin on so many servers; on the others when these have succeeded." />
      <TextField name="max_concurrent" label="At a time" placeholder="all" hint="Servers at the same time, at most." />
      <TextField name="max_fail_percentage" label="Fail limit in %" placeholder="100" hint="Begin on no more servers when a larger share has failed." />
      {hasTimeout && <TextField name="timeout" label="Timeout in seconds" placeholder="none" hint="Kill a run that takes longer." />}
      <TextField name="name" label="Name" placeholder="run" hint="How the trigger is called in lists." />
      <CheckField name="require_window" label="Only in each server’s maintenance window" onChange={onWindow} />
    </>
  );
}

/** Starts a trigger, and returns its id. A config that was made for it is deleted if it does not start. */
async function createTrigger(content: Content, values: FormData, servers: string[]): Promise<string> {
  const canary = parseCanary(textOf(values, "canary") ?? "");
  const limits = {
    ...(canary === null ? {} : { canary }),
    max_concurrent: numberOf(values, "max_concurrent", "At a time"),
    max_fail_percentage: numberOf(values, "max_fail_percentage", "The fail limit"),
    timeout: numberOf(values, "timeout", "The timeout"),
    ...(values.get("require_window") === "on" ? { require_window: true } : {}),
  };
  const name = textOf(values, "name") ?? content.name;
  const { id, isNew } = await findConfig(content, name);
  const body = { config_id: id, servers, name, input_values: content.values, action: content.action, ...limits };
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
  const body = { name, ...content.body };
  const answer = (await change("POST", "/v1/{project}/software_configs", {}, body)) as { software_config: { id: string } };
  return { id: answer.software_config.id, isNew: true };
}

function numberOf(values: FormData, name: string, label: string): number | undefined {
  const text = textOf(values, name);
  if (text !== undefined && !/^\d+$/.test(text)) throw new Error(`${label} is a number, not “${text}”.`);
  return text === undefined ? undefined : Number(text);
}
