import type { ComponentChildren } from "preact";
import { Card, Empty, NumberedText, Value, Values } from "../ui/parts";

type Parameter = { name?: unknown; type?: unknown; description?: unknown; default?: unknown; value?: unknown };

interface Props {
  of: { inputs: readonly Parameter[]; outputs: readonly Parameter[]; options: Record<string, unknown> };
  text: string;
  /** What it is, in a word: config or entry. */
  what: string;
  /** More cards. */
  children?: ComponentChildren;
}

/** What a config or an entry of the catalog runs, with which inputs, outputs and options. */
export function Definition({ of: { inputs, outputs, options }, text, what, children }: Props) {
  return (
    <>
      <Card title="Text">{text ? <NumberedText of={text} label={`Text of the ${what}`} /> : <Empty>The {what} is empty.</Empty>}</Card>
      <div class="columns">
        <Card title="Inputs">
          <Parameters of={inputs} none={`The ${what} has no inputs.`} />
        </Card>
        <Card title="Outputs">
          <Parameters of={outputs} none={`The ${what} has no outputs.`} />
        </Card>
        {Object.keys(options).length > 0 && (
          <Card title="Options">
            <Values of={options} none="" />
          </Card>
        )}
        {children}
      </div>
    </>
  );
}

/** Inputs or outputs with their types and descriptions. */
function Parameters({ of: parameters, none }: { of: readonly Parameter[]; none: string }) {
  if (parameters.length === 0) return <Empty>{none}</Empty>;
  return (
    <ul class="rows">
      {parameters.map((parameter) => (
        <li key={String(parameter.name)}>
          <span class="mono">{String(parameter.name)}</span>
          <span class="quiet">{String(parameter.type ?? "String")}</span>
          <span class="row-text">{String(parameter.description ?? "")}</span>
          {(parameter.value ?? parameter.default) !== undefined && <Value of={parameter.value ?? parameter.default} />}
        </li>
      ))}
    </ul>
  );
}
