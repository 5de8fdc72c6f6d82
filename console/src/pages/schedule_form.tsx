import { useState } from "preact/hooks";
import { change, get, type Schemas } from "../api/client";
import { cronInWords } from "../model/cron";
import { useData } from "../ui/data";
import { CheckField, ChoiceField, FormDialog, textOf, TextField } from "../ui/form";

type Schedule = Schemas["SoftwareSchedule"];

const PATH = "/v1/{project}/software_schedules";
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Creates a schedule, or changes when the one of `of` is due. */
export function ScheduleForm({ of: schedule, onDone, onClose }: { of?: Schedule; onDone: () => void; onClose: () => void }) {
  const [cron, setCron] = useState(schedule?.cron ?? (schedule ? "" : "0 2 * * *"));
  const submit = async (values: FormData) => {
    const times = {
      name: textOf(values, "name"),
      ...(textOf(values, "cron") ? { cron: textOf(values, "cron") } : { at: textOf(values, "at") }),
      timezone: textOf(values, "timezone"),
      require_window: values.get("require_window") === "on",
      misfire_policy: textOf(values, "misfire_policy"),
      overlap_policy: textOf(values, "overlap_policy"),
    };
    if (schedule) await change("PATCH", `${PATH}/{schedule_id}`, { schedule_id: schedule.id }, times);
    else await change("POST", PATH, {}, { ...times, trigger: triggerOf(values) });
    onDone();
  };
  const words = cron ? (cronInWords(cron) ?? "minute, hour, day, month and day of the week") : "minute, hour, day, month, day of the week; empty: once";
  return (
    <FormDialog title={schedule ? `Edit ${schedule.name}` : "New schedule"} label={schedule ? "Save" : "Create"} submit={submit} onClose={onClose}>
      <TextField name="name" label="Name" value={schedule?.name} placeholder="nightly" isRequired />
      {!schedule && <Work />}
      <div class="pair">
        <TextField name="cron" label="Cron" value={cron} onInput={setCron} hint={words} />
        <TextField name="timezone" label="Time zone" value={schedule?.timezone ?? zone} list="zones" />
      </div>
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {!cron && <TextField name="at" label="Only time" value={schedule?.at ?? ""} placeholder="2031-05-06T02:30:00" hint="In the time zone above, unless it has an offset" isRequired />}
      <ChoiceField name="misfire_policy" label="Times that pass while Stoker is down" value={schedule?.misfire_policy ?? "RUN"} choices={[["RUN", "run once afterwards"], ["SKIP", "are skipped"]]} />
      <ChoiceField name="overlap_policy" label="Waiting runs of earlier times" value={schedule?.overlap_policy ?? "REPLACE"} choices={[["REPLACE", "are replaced by the next"], ["QUEUE", "are kept"]]} />
      <CheckField name="require_window" label="Each server waits for its maintenance window" isChecked={schedule?.require_window ?? false} />
    </FormDialog>
  );
}

/** What runs, and where. */
function Work() {
  const [source, setSource] = useState("config");
  const configs = useData("configs of the form", async (signal) => (await get("/v1/{project}/software_configs", {}, { derived: false, limit: 500 }, signal)).software_configs, 0);
  return (
    <>
      <ChoiceField name="source" label="Runs" value={source} onChange={setSource} choices={[["config", "a config"], ["resource", "a component of a stack"]]} />
      {source === "config" ? (
        <ChoiceField name="config_id" label="Config" choices={(configs.data ?? []).map((config) => [config.id, `${config.name ?? config.id} (${config.group ?? "no group"}, ${config.id.slice(0, 8)})`])} />
      ) : (
        <div class="pair">
          <TextField name="stack" label="Stack" isRequired />
          <TextField name="resource" label="Component" isRequired />
        </div>
      )}
      <TextField name="action" label="Action" placeholder={source === "config" ? "TRIGGER" : "BACKUP"} isRequired={source !== "config"} />
      <div class="pair">
        <TextField name="selector" label="Servers by selector" placeholder="tier=web and os.family=debian" />
        <TextField name="servers" label="or by name" placeholder="web1, web2" hint={source === "config" ? undefined : "Neither: the servers of the component"} />
      </div>
    </>
  );
}

function triggerOf(values: FormData): Record<string, unknown> {
  const names = (textOf(values, "servers") ?? "").split(/[\s,]+/).filter(Boolean);
  const given = {
    config_id: textOf(values, "config_id"),
    stack: textOf(values, "stack"),
    resource: textOf(values, "resource"),
    action: textOf(values, "action"),
    selector: textOf(values, "selector"),
    servers: names.length > 0 ? names : undefined,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
