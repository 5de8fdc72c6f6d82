import { useState } from "preact/hooks";
import { get, type Schemas } from "../api/client";
import { fieldOfInput, type Input } from "../model/parameters";
import { parseLabels, scriptOf } from "../model/targets";
import { type Loaded, useData } from "../ui/data";
import { ChoiceField, textOf, TextField } from "../ui/form";
import { Empty, Problem } from "../ui/parts";
import { query, setQuery } from "../ui/router";
import { Fields } from "../views/parameters";

type Config = Schemas["SoftwareConfig"];
type Entry = Schemas["CatalogEntryDetails"];

/** What can be run, by the parameter `what` of the URL. */
export const KINDS: Record<string, { title: string }> = {
  "": { title: "Run a command" },
  config: { title: "Run a config" },
  entry: { title: "Run a catalog entry" },
  upgrade: { title: "Upgrade agents" },
};

/** What a trigger runs: an existing config, or one to create. */
export interface Content {
  name: string;
  config_id?: string;
  body: { group?: string; config?: string; inputs?: { name: string }[] };
  action?: string | undefined;
  values: Record<string, string>;
}

export interface ContentState {
  /** Texts of the fields of the declared inputs. */
  texts: Record<string, string>;
  setTexts: (next: Record<string, string>) => void;
  config: Loaded<Config | null>;
  entry: Loaded<Entry | null>;
  /** The group of the config, as far as it is known. */
  group: string;
}

/** Reads what the URL names, and keeps what the form contains. */
export function useContent(what: string): ContentState {
  const [texts, setTexts] = useState<Record<string, string>>({});
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
  return { texts, setTexts, config, entry, group };
}

/** Returns what the form describes. Throws an Error with a sentence if something is missing. */
export function toContent(what: string, { texts, config, entry }: ContentState, form: FormData): Content {
  const values = Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== ""));
  if (what === "upgrade") return { name: "agent-upgrade", body: { group: "agent" }, values: {} };
  if (what === "config") {
    if (!config.data) throw new Error("Choose the config to run.");
    return { name: config.data.name ?? config.data.id, config_id: config.data.id, body: {}, values };
  }
  if (what === "entry") {
    if (!entry.data) throw new Error("Choose the catalog entry to run.");
    return { name: entry.data.name, body: { config: entry.data.text }, values, action: textOf(form, "action") };
  }
  const command = String(form.get("command") ?? "");
  if (!command.trim()) throw new Error("Write the command to run.");
  const variables = textOf(form, "variables");
  const named = Object.entries(variables ? parseLabels(variables) : {}).map(([name, value]) => [name, value ?? ""] as const);
  const body = { group: "script", config: scriptOf(command), inputs: named.map(([name]) => ({ name })) };
  return { name: "run", body, values: Object.fromEntries(named) };
}

/** The fields that say what to run. */
export function ContentFields({ what, content }: { what: string; content: ContentState }) {
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
      <TextField
        name="command"
        label="Command or script"
        rows={8}
        class="mono"
        placeholder="df -h / | tail -1"
        hint="For sh, or for the interpreter of a first line such as #!/usr/bin/python3."
        isRequired
        isFirst
      />
      <TextField name="variables" label="Variables" placeholder="tier=web" hint="NAME=VALUE, with blanks between them: the environment of the script." />
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
      <ChoiceField
        name="config"
        label="Config"
        value={query.value.get("config") ?? ""}
        onChange={(config) => setQuery({ config })}
        choices={[["", "Choose a config"], ...(configs.data ?? []).map((one) => [one.id, `${one.name ?? one.id} (${one.group})`] as const)]}
        isRequired
      />
      {content.config.error && <Problem error={content.config.error} />}
      {content.config.data && <InputFields inputs={content.config.data.inputs as Input[]} content={content} />}
    </>
  );
}

function EntryFields({ content }: { content: ContentState }) {
  const entries = useData("catalog", async (signal) => (await get("/v1/{project}/catalog", {}, {}, signal)).entries, 0);
  const entry = content.entry.data;
  const names = (entries.data ?? []).map((one) => [`${one.name}/${one.version}`, one.description] as const);
  return (
    <>
      <ChoiceField
        name="entry"
        label="Entry of the catalog"
        value={query.value.get("entry") ?? ""}
        onChange={(entry) => setQuery({ entry })}
        choices={[["", "Choose an entry"], ...names.map(([name, text]) => [name, `${name}: ${text}`] as const)]}
        isRequired
      />
      {content.entry.error && <Problem error={content.entry.error} />}
      {entry && (
        <>
          <ChoiceField key={entry.name} name="action" label="Action" choices={entry.actions.map((action) => [action, action] as const)} />
          <InputFields inputs={entry.inputs as unknown as Input[]} content={content} />
        </>
      )}
    </>
  );
}

/** A field for each declared input. An empty one leaves the default; without a default, a value is needed. */
function InputFields({ inputs, content }: { inputs: readonly Input[]; content: ContentState }) {
  if (inputs.length === 0) return <p class="quiet">It has no inputs.</p>;
  return <Fields fields={inputs.map(fieldOfInput)} texts={content.texts} onChange={content.setTexts} />;
}
