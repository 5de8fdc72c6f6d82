import { useState } from "preact/hooks";
import { change, type Schemas } from "../api/client";
import { cronInWords } from "../model/cron";
import { splitNames } from "../model/targets";
import { FormDialog } from "../ui/actions";
import { useGet } from "../ui/data";
import { CheckField, ChoiceField, textOf, TextField } from "../ui/form";
import { ZONE } from "../ui/parts";
import { ConfigFields, type Texts, valuesOf } from "../views/config_fields";

type Schedule = Schemas["SoftwareSchedule"];

const PATH = "/v1/{project}/software_schedules";

/** Creates a schedule, or changes when the one of `of` is due. */
export function ScheduleForm({ of: schedule, onDone, onClose }: { of?: Schedule; onDone: () => void; onClose: () => void }) {
  const [cron, setCron] = useState(schedule?.cron ?? (schedule ? "" : "0 2 * * *"));
  const [texts, setTexts] = useState<Texts>({});
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
    else await change("POST", PATH, {}, { ...times, trigger: triggerOf(values, texts) });
    onDone();
  };
  const words = cron ? (cronInWords(cron) ?? "minute, hour, day, month and day of the week") : "minute, hour, day, month, day of the week; empty: once";
  return (
    <FormDialog title={schedule ? `Edit ${schedule.name}` : "New schedule"} label={schedule ? "Save" : "Create"} submit={submit} onClose={onClose}>
      <TextField name="name" label="Name" value={schedule?.name} placeholder="nightly" isRequired />
      {!schedule && <Work texts={texts} onChange={setTexts} />}
      <div class="pair">
        <TextField name="cron" label="Cron" value={cron} onInput={setCron} hint={words} />
        <TextField name="timezone" label="Time zone" value={schedule?.timezone ?? ZONE} list="zones" />
      </div>
      <datalist id="zones">
        {Intl.supportedValuesOf("timeZone").map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      {!cron && <TextField name="at" label="Time" value={schedule?.at ?? ""} placeholder="2031-05-06T02:30:00" hint="Once, in the time zone above unless it has an offset" isRequired />}
      <ChoiceField name="misfire_policy" label="Times that pass while Stoker is down" value={schedule?.misfire_policy ?? "RUN"} choices={[["RUN", "run once afterwards"], ["SKIP", "are skipped"]]} />
      <ChoiceField name="overlap_policy" label="Runs of earlier times that still wait" value={schedule?.overlap_policy ?? "REPLACE"} choices={[["REPLACE", "are replaced by the next ones"], ["QUEUE", "are kept"]]} />
      <CheckField name="require_window" label="Each server waits for its maintenance window" isChecked={schedule?.require_window ?? false} />
    </FormDialog>
  );
}

/** What runs, and where. */
function Work({ texts, onChange }: { texts: Texts; onChange: (texts: Texts) => void }) {
  const [source, setSource] = useState("config");
  const [id, setId] = useState("");
  const config = useGet(id ? "/v1/{project}/software_configs/{config_id}" : null, { config_id: id }, {}, 0);
  const isConfig = source === "config";
  const choose = (next: string) => {
    setId(next);
    onChange({});
  };
  return (
    <>
      <ChoiceField name="source" label="Runs" value={source} onChange={setSource} choices={[["config", "a config"], ["resource", "a component of a stack"]]} />
      {isConfig ? (
        <ConfigFields id={id} of={config} onChoose={choose} texts={texts} onChange={onChange} />
      ) : (
        <div class="pair">
          <TextField name="stack" label="Stack" isRequired />
          <TextField name="resource" label="Component" isRequired />
        </div>
      )}
      <TextField name="action" label="Action" placeholder={isConfig ? "TRIGGER" : "BACKUP"} isRequired={!isConfig} />
      <div class="pair">
        <TextField name="selector" label="Servers by selector" placeholder="tier=web and os.family=debian" />
        <TextField name="servers" label="or by name" placeholder="web1, web2" hint={isConfig ? undefined : "If both are empty: the servers of the component"} />
      </div>
    </>
  );
}

function triggerOf(values: FormData, texts: Texts): Record<string, unknown> {
  const names = splitNames(textOf(values, "servers") ?? "");
  const config_id = textOf(values, "config_id");
  const given = {
    config_id,
    input_values: config_id && valuesOf(texts),
    stack: textOf(values, "stack"),
    resource: textOf(values, "resource"),
    action: textOf(values, "action"),
    selector: textOf(values, "selector"),
    servers: names.length > 0 ? names : undefined,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
