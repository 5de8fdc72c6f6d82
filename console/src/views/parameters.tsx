import { type Field, type Group } from "../model/parameters";
import { Card } from "../ui/parts";

interface Props {
  texts: Readonly<Record<string, string>>;
  /** The texts that the stack has; a hidden value that it has is an empty text. */
  before?: Readonly<Record<string, string>>;
  problems?: Readonly<Record<string, string>>;
  onChange: (texts: Record<string, string>) => void;
}

/** The form of a template's parameters, in their groups. Hidden values are never shown. */
export function ParameterForm({ groups, ...rest }: Props & { groups: readonly Group[] }) {
  return (
    <>
      {groups.map((group) => (
        <Card key={group.title} title={group.title}>
          <div class="fields">
            <Fields fields={group.fields} {...rest} />
          </div>
        </Card>
      ))}
    </>
  );
}

/** A control for each field, with what its value must be. */
export function Fields({ fields, ...rest }: Props & { fields: readonly Field[] }) {
  return (
    <>
      {fields.map((field) => (
        <FieldView key={field.name} field={field} {...rest} />
      ))}
    </>
  );
}

function FieldView({ field, texts, before = {}, problems = {}, onChange }: Props & { field: Field }) {
  const id = `parameter-${field.name}`;
  const problem = problems[field.name];
  const notes = [field.parameter.Description, ...field.rules].filter(Boolean);
  const common = {
    id,
    "aria-describedby": `${id}-notes`,
    "aria-invalid": problem !== undefined,
    required: !field.isOptional && before[field.name] === undefined,
    value: texts[field.name] ?? "",
    // An input event also comes from a choice; each change throws the plan away.
    onInput: (event: Event) => onChange({ ...texts, [field.name]: (event.currentTarget as HTMLInputElement).value }),
  };
  return (
    <div class="field">
      <label for={id}>
        {field.parameter.Label}
        {common.required && <span class="quiet"> (required)</span>}
      </label>
      <Control field={field} common={common} isKept={field.isHidden && before[field.name] !== undefined} />
      <p class="quiet" id={`${id}-notes`}>
        {notes.join(" · ")}
        {problem !== undefined && <span class="bad"> {problem}</span>}
      </p>
    </div>
  );
}

type Common = Record<string, unknown> & { value: string };

function Control({ field, common, isKept }: { field: Field; common: Common; isKept: boolean }) {
  const { parameter } = field;
  const standard = field.isOptional ? `default: ${field.standard || (field.isHidden ? "hidden" : "empty")}` : "";
  if (field.isHidden) {
    const hint = isKept ? "unchanged" : standard;
    return <input type="password" autocomplete="new-password" placeholder={hint} {...lengthsOf(field)} {...common} />;
  }
  const choices = parameter.Type === "Boolean" ? ["true", "false"] : parameter.AllowedValues?.map(String);
  if (choices && parameter.Type !== "CommaDelimitedList") {
    const shown = common.value !== "" && !choices.includes(common.value) ? [...choices, common.value] : choices;
    return (
      <select {...common}>
        <option value="">{standard || "choose"}</option>
        {shown.map((choice) => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  switch (parameter.Type) {
    case "Number":
      return (
        <input
          type="number"
          placeholder={standard}
          {...(parameter.MinValue === undefined ? {} : { min: parameter.MinValue })}
          {...(parameter.MaxValue === undefined ? {} : { max: parameter.MaxValue })}
          step={parameter.Step ?? "any"}
          {...common}
        />
      );
    case "Json":
      return <textarea rows={3} spellcheck={false} placeholder={standard} class="mono" {...common} />;
    case "CommaDelimitedList":
      return <input placeholder={standard || "one, two"} {...common} />;
    default:
      return /\n/.test(common.value + field.standard) ? (
        <textarea rows={4} placeholder={standard} {...common} />
      ) : (
        <input placeholder={standard} {...lengthsOf(field)} {...common} />
      );
  }
}

function lengthsOf({ parameter }: Field): Record<string, number> {
  if (parameter.Type !== "String") return {};
  return {
    ...(parameter.MinLength === undefined ? {} : { minLength: parameter.MinLength }),
    ...(parameter.MaxLength === undefined ? {} : { maxLength: parameter.MaxLength }),
  };
}
