import { useState } from "preact/hooks";
import { get, type Schemas } from "../api/client";
import { parseLabels, scriptOf } from "../model/targets";
import { type Loaded, useData } from "../ui/data";
import { Empty, Problem } from "../ui/parts";
import { query, setQuery } from "../ui/router";

type Config = Schemas["SoftwareConfig"];
type Entry = Schemas["CatalogEntryDetails"];

/** What can be run, by the parameter `what` of the URL. */
export const KINDS: Record<string, { title: string }> = {
  "": { title: "Run a command" },
  config: { title: "Run a config" },
  entry: { title: "Run a catalog entry" },
  upgrade: { title: "Upgrade agents" },
};

/** A declared input of a config or an entry. */
interface Input {
  name: string;
  type?: string;
  description?: string;
  default?: unknown;
  secret?: boolean;
}

/** What a trigger runs: an existing config, or one to create. */
export interface Content {
  name: string;
  config_id?: string;
  body: { group?: string; config?: string; inputs?: { name: string }[] };
  action?: string;
  values: Record<string, string>;
}

/** The part of the form that says what to run. */
export interface Form {
  command: string;
  variables: string;
  values: Record<string, string>;
  action: string;
}

export interface ContentState {
  form: Form;
  setForm: (next: Form) => void;
  config: Loaded<Config | null>;
  entry: Loaded<Entry | null>;
  /** The group of the config, as far as it is known. */
  group: string;
}

/** Reads what the URL names, and keeps what the form contains. */
export function useContent(what: string): ContentState {
  const [form, setForm] = useState<Form>({ command: "", variables: "", values: {}, action: "" });
  const id = what === "config" ? (query.value.get("config") ?? "") : "";
  const ref = what === "entry" ? (query.value.get("entry") ?? "") : "";
  const config = useData(`config ${id}`, async (signal) => {
    if (!id) return null;
    return (await get("/v1/{project}/software_configs/{config_id}", { config_id: id }, {}, signal)).software_config;
  }, 0);
  const entry = useData(`entry ${ref}`, async (signal) => {
    const [entry_name = "", number = ""] = ref.split("/");
    if (!number) return null;
    return (await get("/v1/{project}/catalog/{entry_name}/{number}", { entry_name, number }, {}, signal)).entry;
  }, 0);
  const group = what === "upgrade" ? "agent" : (config.data?.group ?? entry.data?.group ?? "script");
  return { form, setForm, config, entry, group };
}

/** Returns what the form describes. Throws an Error with a sentence if something is missing. */
export function toContent(what: string, { form, config, entry }: ContentState): Content {
  const values = Object.fromEntries(Object.entries(form.values).filter(([, value]) => value !== ""));
  if (what === "upgrade") return { name: "agent-upgrade", body: { group: "agent" }, values: {} };
  if (what === "config") {
    if (!config.data) throw new Error("Choose the config to run.");
    return { name: config.data.name ?? config.data.id, config_id: config.data.id, body: {}, values };
  }
  if (what === "entry") {
    if (!entry.data) throw new Error("Choose the catalog entry to run.");
    const action = form.action || entry.data.actions[0];
    return { name: entry.data.name, body: { config: entry.data.text }, values, ...(action ? { action } : {}) };
  }
  if (!form.command.trim()) throw new Error("Write the command to run.");
  const variables = form.variables.trim() ? parseLabels(form.variables) : {};
  const named = Object.entries(variables).map(([name, value]) => [name, value ?? ""] as const);
  const body = { group: "script", config: scriptOf(form.command), inputs: named.map(([name]) => ({ name })) };
  return { name: "run", body, values: Object.fromEntries(named) };
}

/** The fields that say what to run. */
export function ContentFields({ what, content }: { what: string; content: ContentState }) {
  const { form, setForm } = content;
  if (what === "upgrade") {
    return (
      <p>
        Each agent fetches the program of this Stoker, verifies it, lets its runs end, and restarts. It returns to the old program if the new
        one does not reach the service within two minutes.
      </p>
    );
  }
  if (what === "config") return <ConfigFields content={content} />;
  if (what === "entry") return <EntryFields content={content} />;
  return (
    <>
      <label class="field">
        <span>Command or script</span>
        <textarea
          class="mono"
          rows={8}
          required
          autofocus
          spellcheck={false}
          placeholder="df -h / | tail -1"
          value={form.command}
          onInput={(event) => setForm({ ...form, command: event.currentTarget.value })}
        />
        <span class="quiet">For sh, or for the interpreter of a first line such as #!/usr/bin/python3.</span>
      </label>
      <label class="field">
        <span>Variables</span>
        <input placeholder="tier=web" value={form.variables} onInput={(event) => setForm({ ...form, variables: event.currentTarget.value })} />
        <span class="quiet">NAME=VALUE, with blanks between them: the environment of the script.</span>
      </label>
    </>
  );
}

function ConfigFields({ content }: { content: ContentState }) {
  const configs = useData("configs", async (signal) => (await get("/v1/{project}/software_configs", {}, { derived: false, limit: 1000 }, signal)).software_configs, 0);
  if (configs.data?.length === 0) {
    return (
      <Empty>
        This project has no configs. <code>stoker config create backup -f backup.sh</code> creates one.
      </Empty>
    );
  }
  return (
    <>
      <label class="field">
        <span>Config</span>
        <select required value={query.value.get("config") ?? ""} onChange={(event) => setQuery({ config: event.currentTarget.value })}>
          <option value="">Choose a config</option>
          {configs.data?.map((config) => (
            <option key={config.id} value={config.id}>
              {config.name ?? config.id} ({config.group})
            </option>
          ))}
        </select>
      </label>
      {content.config.error && <Problem error={content.config.error} />}
      {content.config.data && <InputFields inputs={content.config.data.inputs as Input[]} content={content} />}
    </>
  );
}

function EntryFields({ content }: { content: ContentState }) {
  const entries = useData("catalog", async (signal) => (await get("/v1/{project}/catalog", {}, {}, signal)).entries, 0);
  const entry = content.entry.data;
  const { form, setForm } = content;
  return (
    <>
      <label class="field">
        <span>Entry of the catalog</span>
        <select required value={query.value.get("entry") ?? ""} onChange={(event) => setQuery({ entry: event.currentTarget.value })}>
          <option value="">Choose an entry</option>
          {entries.data?.map((one) => (
            <option key={`${one.name}/${one.version}`} value={`${one.name}/${one.version}`}>
              {one.name}/{one.version}: {one.description}
            </option>
          ))}
        </select>
      </label>
      {content.entry.error && <Problem error={content.entry.error} />}
      {entry && (
        <>
          <label class="field">
            <span>Action</span>
            <select value={form.action || entry.actions[0]} onChange={(event) => setForm({ ...form, action: event.currentTarget.value })}>
              {entry.actions.map((action) => (
                <option key={action}>{action}</option>
              ))}
            </select>
          </label>
          <InputFields inputs={entry.inputs as unknown as Input[]} content={content} />
        </>
      )}
    </>
  );
}

/** A field for each declared input. An empty one leaves the default; without a default, a value is needed. */
function InputFields({ inputs, content }: { inputs: readonly Input[]; content: ContentState }) {
  const { form, setForm } = content;
  const change = (name: string, value: string) => setForm({ ...form, values: { ...form.values, [name]: value } });
  if (inputs.length === 0) return <p class="quiet">It has no inputs.</p>;
  return (
    <>
      {inputs.map((input) => {
        const value = form.values[input.name] ?? "";
        const hint = input.default === undefined || input.default === null ? "" : textOf(input.default);
        const isRequired = input.default === undefined;
        return (
          <label key={input.name} class="field">
            <span>
              {input.name} {input.type && input.type !== "String" && <span class="quiet">({input.type})</span>}
            </span>
            {input.type === "Boolean" ? (
              <select required={isRequired} value={value} onChange={(event) => change(input.name, event.currentTarget.value)}>
                <option value="">{hint ? `default: ${hint}` : "not set"}</option>
                <option>true</option>
                <option>false</option>
              </select>
            ) : hint.includes("\n") || input.type === "Json" ? (
              <textarea rows={3} required={isRequired} placeholder={hint} value={value} onInput={(event) => change(input.name, event.currentTarget.value)} />
            ) : (
              <TextInput
                isSecret={input.secret === true}
                isRequired={isRequired}
                hint={hint}
                value={value}
                onInput={(next) => change(input.name, next)}
              />
            )}
            {input.description && <span class="quiet">{input.description}</span>}
          </label>
        );
      })}
    </>
  );
}

function TextInput(props: { isSecret: boolean; isRequired: boolean; hint: string; value: string; onInput: (next: string) => void }) {
  const common = {
    autocomplete: "off",
    required: props.isRequired,
    placeholder: props.hint,
    value: props.value,
    onInput: (event: InputEvent) => props.onInput((event.currentTarget as HTMLInputElement).value),
  };
  return props.isSecret ? <input type="password" {...common} /> : <input {...common} />;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
