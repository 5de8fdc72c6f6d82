import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import { Dialog, Problem } from "./parts";

/** A dialog with fields. It stays open, with the reason, while the server refuses what `submit` sends. */
export function FormDialog(props: {
  title: string;
  /** The button that sends the form. */
  label: string;
  submit: (values: FormData) => Promise<unknown>;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const values = new FormData(event.currentTarget as HTMLFormElement);
    setRunning(true);
    try {
      await props.submit(values);
      props.onClose();
    } catch (problem) {
      setError(problem as ApiError);
      setRunning(false);
    }
  };
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <form class="stack fields" onSubmit={(event) => void send(event)}>
        {props.children}
        {error && <Problem error={error} />}
        <div class="buttons">
          <button class="primary" disabled={isRunning}>
            {props.label}
          </button>
          <button type="button" onClick={props.onClose}>
            Leave it
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** A field of a form that is one text. */
export function TextField(props: {
  name: string;
  label: string;
  hint?: ComponentChildren;
  value?: string | undefined;
  placeholder?: string;
  type?: "text" | "password" | "url";
  list?: string;
  isRequired?: boolean;
  onInput?: (text: string) => void;
}) {
  const kind = { type: props.type ?? "text", list: props.list } as { type: "text" }; // the types tell inputs apart by both
  return (
    <label>
      {props.label}
      <input
        {...kind}
        name={props.name}
        defaultValue={props.value}
        placeholder={props.placeholder}
        required={props.isRequired}
        autocomplete={props.type === "password" ? "new-password" : "off"}
        onInput={(event) => props.onInput?.(event.currentTarget.value)}
      />
      {props.hint && <span class="quiet hint">{props.hint}</span>}
    </label>
  );
}

/** A field of a form that is one of several values. */
export function ChoiceField(props: {
  name: string;
  label: string;
  value?: string | undefined;
  choices: readonly (readonly [value: string, text: string])[];
  onChange?: (value: string) => void;
}) {
  return (
    <label>
      {props.label}
      {/* not controlled: what somebody has chosen stays when the page is drawn again */}
      <select name={props.name} onChange={(event) => props.onChange?.(event.currentTarget.value)}>
        {props.choices.map(([value, text]) => (
          <option key={value} value={value} selected={value === props.value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Returns the text of a field without surrounding spaces; undefined for an empty one. */
export function textOf(values: FormData, name: string): string | undefined {
  const text = String(values.get(name) ?? "").trim();
  return text === "" ? undefined : text;
}
