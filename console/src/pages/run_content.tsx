import { useState } from "preact/hooks";
import type { Schemas } from "../api/client";
import type { Input } from "../model/parameters";
import { parseLabels, scriptOf } from "../model/targets";
import { type Loaded, useGet } from "../ui/data";
import { ChoiceField, textOf, TextField } from "../ui/form";
import { Problem } from "../ui/parts";
import { readQuery, setQuery } from "../ui/router";
import { ConfigFields, InputFields, type Texts, valuesOf } from "../views/config_fields";

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

interface ContentState {
  /** Texts of the fields of the declared inputs. */
  texts: Texts;
  setTexts: (next: Texts) => void;
  config: Loaded<{ software_config: Schemas["SoftwareConfig"] }>;
  entry: Loaded<{ entry: Schemas["CatalogEntryDetails"] }>;
  /** The group of the config, as far as it is known. */
  group: string;
}

/** Reads what the URL names, and keeps what the form contains. */
export function useContent(what: string): ContentState {
  const [texts, setTexts] = useState<Texts>({});
  const { config: config_id, entry: ref } = readQuery("config", "entry");
  const [entry_name = "", number = ""] = ref.split("/");
  const config = useGet(what === "config" && config_id ? "/v1/{project}/software_configs/{config_id}" : null, { config_id }, {}, 0);
  const entry = useGet(what === "entry" && number ? "/v1/{project}/catalog/{entry_name}/{number}" : null, { entry_name, number }, {}, 0);
  const group = config.data?.software_config.group ?? entry.data?.entry.group ?? "script";
  return { texts, setTexts, config, entry, group: what === "upgrade" ? "agent" : group };
}

/** Returns what the form describes. Throws an Error with a sentence if something is missing. */
export function toContent(what: string, { texts, config, entry }: ContentState, form: FormData): Content {
  const values = valuesOf(texts);
  if (what === "upgrade") return { name: "agent-upgrade", body: { group: "agent" }, values: {} };
  if (what === "config") {
    if (!config.data) throw new Error("Choose the config to run.");
    const { id, name } = config.data.software_config;
    return { name: name ?? id, config_id: id, body: {}, values };
  }
  if (what === "entry") {
    if (!entry.data) throw new Error("Choose the catalog entry to run.");
    const { name, text } = entry.data.entry;
    return { name, body: { config: text }, values, action: textOf(form, "action") };
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
        Each agent downloads the program of this Stoker, verifies it, waits for its runs, and restarts. It returns to the old program if the
        new one does not reach the service within two minutes.
      </p>
    );
  }
  if (what === "config") {
    const { texts, setTexts, config } = content;
    const choose = (config: string) => {
      setQuery({ config });
      setTexts({});
    };
    return <ConfigFields id={readQuery("config").config} of={config} onChoose={choose} texts={texts} onChange={setTexts} />;
  }
  if (what === "entry") return <EntryFields content={content} />;
  return (
    <>
      <TextField
        name="command"
        label="Command or script"
        rows={8}
        class="mono"
        placeholder="df -h / | tail -1"
        hint="Run by sh, or by the interpreter that the first line names, such as #!/usr/bin/python3."
        isRequired
        isFirst
      />
      <TextField name="variables" label="Variables" placeholder="tier=web" hint="NAME=VALUE, separated by spaces: environment variables of the script." />
    </>
  );
}

function EntryFields({ content: { entry: chosen, texts, setTexts } }: { content: ContentState }) {
  const entries = useGet("/v1/{project}/catalog", {}, {}, 0).data?.entries ?? [];
  const choices = entries.map(({ name, version, description }) => [`${name}/${version}`, `${name}/${version}: ${description}`] as const);
  const entry = chosen.data?.entry;
  return (
    <>
      <ChoiceField
        name="entry"
        label="Entry of the catalog"
        value={readQuery("entry").entry}
        onChange={(entry) => setQuery({ entry })}
        choices={[["", "Choose an entry"], ...choices]}
        isRequired
      />
      {chosen.error && <Problem error={chosen.error} />}
      {entry && (
        <>
          <ChoiceField key={entry.name} name="action" label="Action" choices={entry.actions.map((action) => [action, action] as const)} />
          <InputFields inputs={entry.inputs as unknown as Input[]} texts={texts} onChange={setTexts} />
        </>
      )}
    </>
  );
}
