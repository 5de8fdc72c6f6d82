import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Problem } from "./parts";

/** Runs tasks of a page, one at a time: while one runs, and why the last one failed. `run` returns whether it has ended well. */
export function useTask() {
  const [state, setState] = useState<{ isRunning: boolean; error: Error | null }>({ isRunning: false, error: null });
  const run = async (task: () => Promise<unknown>): Promise<boolean> => {
    setState({ isRunning: true, error: null });
    let error: Error | null = null;
    await task().catch((problem: unknown) => (error = problem as Error));
    setState({ isRunning: false, error });
    return error === null;
  };
  return { ...state, run };
}

export interface FormProps {
  /** The button that sends the form. */
  label: string;
  submit: (values: FormData, form: HTMLFormElement) => Promise<unknown>;
  children?: ComponentChildren;
  class?: string;
  isDangerous?: boolean | undefined;
  isDisabled?: boolean;
  /** Other buttons beside that of the form. */
  buttons?: ComponentChildren;
}

/** A form. It shows the reason while what `submit` does fails, and can be sent again. */
export function Form({ label, submit, children, class: look = "stack", isDangerous, isDisabled, buttons }: FormProps) {
  const { isRunning, error, run } = useTask();
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const values = new FormData(form);
    void run(() => submit(values, form));
  };
  return (
    <form class={look} onSubmit={send}>
      {children}
      {error && <Problem error={error} />}
      <div class="buttons">
        <button class={isDangerous ? "danger" : "primary"} disabled={isRunning || isDisabled}>
          {label}
        </button>
        {buttons}
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  label: string;
  hint?: ComponentChildren;
  value?: string | undefined;
}

function Field({ label, hint, children }: { label: string; hint?: ComponentChildren; children: ComponentChildren }) {
  return (
    <label class="field">
      {label}
      {children}
      {hint && <span class="quiet">{hint}</span>}
    </label>
  );
}

/** A field of a form that is one text; with `rows`, of several lines. */
export function TextField(
  props: FieldProps & {
    placeholder?: string;
    type?: "text" | "password" | "url";
    list?: string;
    pattern?: string;
    autocomplete?: string;
    rows?: number;
    class?: string;
    isRequired?: boolean;
    isFirst?: boolean;
    onInput?: (text: string) => void;
  },
) {
  const kind = { type: props.type ?? "text", list: props.list } as { type: "text" }; // the types tell inputs apart by both
  const common = {
    name: props.name,
    class: props.class,
    defaultValue: props.value,
    placeholder: props.placeholder,
    required: props.isRequired,
    autofocus: props.isFirst,
    spellcheck: false,
    onInput: (event: Event) => props.onInput?.((event.currentTarget as HTMLInputElement).value),
  };
  return (
    <Field label={props.label} hint={props.hint}>
      {props.rows ? (
        <textarea rows={props.rows} {...common} />
      ) : (
        <input {...kind} {...common} pattern={props.pattern} autocomplete={props.autocomplete ?? (props.type === "password" ? "new-password" : "off")} />
      )}
    </Field>
  );
}

/** A field of a form that is one of several values. `value` is one of them, also while `choices` are loaded. */
export function ChoiceField(
  props: FieldProps & {
    choices: readonly (readonly [value: string, text: string])[];
    isRequired?: boolean;
    onChange?: (value: string) => void;
  },
) {
  const isMissing = props.value !== undefined && props.choices.every(([value]) => value !== props.value);
  const choices = isMissing ? [...props.choices, [props.value!, props.value!] as const] : props.choices;
  return (
    <Field label={props.label} hint={props.hint}>
      {/* not controlled: what somebody has chosen stays when the page is drawn again */}
      <select name={props.name} required={props.isRequired} onChange={(event) => props.onChange?.(event.currentTarget.value)}>
        {choices.map(([value, text]) => (
          <option key={value} value={value} selected={value === props.value}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** A field of a form that is yes or no. */
export function CheckField(props: { name: string; label: string; isChecked?: boolean; onChange?: (isChecked: boolean) => void }) {
  return (
    <label class="check">
      <input
        type="checkbox"
        name={props.name}
        defaultChecked={props.isChecked ?? false}
        onChange={(event) => props.onChange?.(event.currentTarget.checked)}
      />
      {props.label}
    </label>
  );
}

/** Returns the text of a field without surrounding spaces; undefined for an empty one. */
export function textOf(values: FormData, name: string): string | undefined {
  const text = String(values.get(name) ?? "").trim();
  return text === "" ? undefined : text;
}
