import type { Schemas } from "../api/client";
import { countBy } from "../model/groups";
import { fieldOfInput, type Input } from "../model/parameters";
import { type Loaded, useGet } from "../ui/data";
import { ChoiceField } from "../ui/form";
import { Empty, Problem } from "../ui/parts";
import { Fields } from "./parameters";

/** Texts of the fields of declared inputs, by name. */
export type Texts = Readonly<Record<string, string>>;

interface Props {
  texts: Texts;
  onChange: (texts: Record<string, string>) => void;
}

/** A choice of one of the project's configs, and a field for each input of the chosen one, which is `of`. */
export function ConfigFields(props: Props & { id: string; of: Loaded<{ software_config: Schemas["SoftwareConfig"] }>; onChoose: (id: string) => void }) {
  const { id, of: chosen, onChoose, ...rest } = props;
  const configs = useGet("/v1/{project}/software_configs", {}, { derived: false, limit: 1000 }, 0).data?.software_configs;
  if (configs?.length === 0) {
    return (
      <Empty>
        This project has no configs. <code>stoker config create backup -f backup.sh</code> creates one.
      </Empty>
    );
  }
  const versions = countBy(configs ?? [], nameOf);
  const choices = (configs ?? []).map((one) => {
    const version = versions.get(nameOf(one))! > 1 ? `, ${one.id.slice(0, 8)}` : "";
    return [one.id, `${nameOf(one)} (${one.group}${version})`] as const;
  });
  return (
    <>
      <ChoiceField name="config_id" label="Config" value={id} onChange={onChoose} choices={[["", "Choose a config"], ...choices]} isRequired />
      {chosen.error && <Problem error={chosen.error} />}
      {chosen.data && <InputFields inputs={chosen.data.software_config.inputs as Input[]} {...rest} />}
    </>
  );
}

function nameOf(config: Schemas["ConfigSummary"]): string {
  return config.name || config.id;
}

/** A field for each declared input. An empty one leaves the default; without a default, a value is needed. */
export function InputFields({ inputs, texts, onChange }: Props & { inputs: readonly Input[] }) {
  if (inputs.length === 0) return <p class="quiet">There are no inputs.</p>;
  return <Fields fields={inputs.map(fieldOfInput)} texts={texts} onChange={onChange} />;
}

/** Returns the values of inputs that have a text. */
export function valuesOf(texts: Texts): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).filter(([, value]) => value !== ""));
}
