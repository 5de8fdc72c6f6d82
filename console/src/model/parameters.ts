/** A parameter as the server's answer to `validate` describes it. */
export interface Described {
  Type: "String" | "Number" | "CommaDelimitedList" | "Json" | "Boolean";
  Description: string;
  NoEcho: "true" | "false";
  Label: string;
  Default?: unknown;
  Value?: unknown;
  MinLength?: number;
  MaxLength?: number;
  MinValue?: number;
  MaxValue?: number;
  Step?: number;
  AllowedValues?: unknown[];
  AllowedPattern?: string;
  CustomConstraint?: string;
  ConstraintDescription?: string;
}

/** A field of the form of a template's parameters. */
export interface Field {
  name: string;
  parameter: Described;
  isHidden: boolean;
  /** Whether it has a default, in the template or in the environment. */
  isOptional: boolean;
  /** The default as text; empty for hidden ones. */
  standard: string;
  /** What a value must fulfill, in words. */
  rules: string[];
}

export interface Group {
  title: string;
  fields: Field[];
}

/** Returns the fields of a template in its groups; those in no group come last. */
export function fieldsOf(
  parameters: Readonly<Record<string, Described>>,
  groups: readonly { label?: string; description?: string; parameters?: readonly string[] }[] = [],
): Group[] {
  const rest = new Map(Object.entries(parameters).map(([name, parameter]) => [name, fieldOf(name, parameter)]));
  const shown: Group[] = [];
  for (const group of groups) {
    const fields = (group.parameters ?? []).flatMap((name) => rest.get(name) ?? []);
    for (const field of fields) rest.delete(field.name);
    if (fields.length > 0) shown.push({ title: group.label ?? group.description ?? "Parameters", fields });
  }
  if (rest.size > 0) shown.push({ title: shown.length > 0 ? "Other parameters" : "Parameters", fields: [...rest.values()] });
  return shown;
}

function fieldOf(name: string, parameter: Described): Field {
  const isHidden = parameter.NoEcho === "true";
  const standard = parameter.Value ?? parameter.Default;
  return {
    name,
    parameter,
    isHidden,
    isOptional: standard !== undefined,
    standard: isHidden || standard === undefined ? "" : textOf(standard),
    rules: rulesOf(parameter),
  };
}

/** A declared input of a config or of an entry of the catalog. */
export interface Input {
  name: string;
  type?: Described["Type"];
  description?: string;
  default?: unknown;
  secret?: boolean;
}

/** Returns the field of a declared input; a default of null is an empty text. */
export function fieldOfInput({ name, type = "String", description = "", default: standard, secret }: Input): Field {
  const Label = type === "String" ? name : `${name} (${type})`;
  const Default = standard === null ? "" : standard;
  return fieldOf(name, { Type: type, Description: description, NoEcho: secret ? "true" : "false", Label, Default });
}

/** Returns a value as the text of its field. */
export function textOf(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value.join(",");
  return typeof value === "string" ? value : JSON.stringify(value);
}

function rulesOf(parameter: Described): string[] {
  const { MinLength, MaxLength, MinValue, MaxValue, Step, AllowedPattern, CustomConstraint } = parameter;
  if (parameter.ConstraintDescription) return [parameter.ConstraintDescription];
  const unit = parameter.Type === "CommaDelimitedList" ? "entries" : "characters";
  return [
    rangeOf(MinLength, MaxLength, ` ${unit}`),
    rangeOf(MinValue, MaxValue, ""),
    Step === undefined ? "" : `in steps of ${Step}`,
    AllowedPattern === undefined ? "" : `matches ${AllowedPattern}`,
    CustomConstraint === undefined ? "" : `a name of ${CustomConstraint}`,
  ].filter(Boolean);
}

function rangeOf(least: number | undefined, most: number | undefined, unit: string): string {
  if (least === undefined) return most === undefined ? "" : `at most ${most}${unit}`;
  return most === undefined ? `at least ${least}${unit}` : `${least} to ${most}${unit}`;
}

/** Returns the value of a field's text as JSON of the parameter's type, or the problem in a sentence. */
export function parseField(field: Field, text: string): { value: unknown } | { problem: string } {
  switch (field.parameter.Type) {
    case "String":
      return { value: text };
    case "Number":
      return text.trim() !== "" && Number.isFinite(Number(text)) ? { value: Number(text) } : { problem: "A number is needed." };
    case "Boolean":
      return { value: text === "true" };
    case "CommaDelimitedList":
      return { value: text.split(/[,\n]/).map((item) => item.trim()).filter(Boolean) };
    case "Json":
      try {
        return { value: JSON.parse(text) as unknown };
      } catch (error) {
        return { problem: `JSON is needed: ${(error as Error).message}` };
      }
  }
}

/** Returns the values of all fields that differ from those before, and the names of those that return to the default. */
export function readForm(
  groups: readonly Group[],
  texts: Readonly<Record<string, string>>,
  before: Readonly<Record<string, string>> = {},
): { values: Record<string, unknown>; cleared: string[]; problems: Record<string, string> } {
  const values: Record<string, unknown> = {};
  const cleared: string[] = [];
  const problems: Record<string, string> = {};
  for (const field of groups.flatMap((group) => group.fields)) {
    const text = texts[field.name] ?? "";
    if (text === (before[field.name] ?? "")) {
      // Unchanged; a hidden value that the stack has is not known here, and stays.
      if (text === "" && !field.isOptional && before[field.name] === undefined) problems[field.name] = "A value is needed.";
    } else if (text === "") {
      cleared.push(field.name);
    } else {
      const parsed = parseField(field, text);
      if ("value" in parsed) values[field.name] = parsed.value;
      else problems[field.name] = parsed.problem;
    }
  }
  return { values, cleared, problems };
}
