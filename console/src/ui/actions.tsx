import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { session } from "../api/session";
import { Form, type FormProps } from "./form";
import { Dialog } from "./parts";
import { Link, type LinkProps } from "./router";

/** Something that a user can do on a page. */
export interface Action {
  label: string;
  /** What will happen, in a sentence; asked before it does. */
  question: string;
  isDangerous?: boolean;
  run: () => Promise<unknown>;
}

/** Buttons for actions, each of which asks before it runs. Readers see none. */
export function Actions({ of: actions, onDone }: { of: readonly Action[]; onDone: () => void }) {
  const [current, setCurrent] = useState<Action | null>(null);
  if (!session.can_write) return null;
  const run = async () => {
    await current!.run();
    onDone();
  };
  return (
    <>
      {actions.map((action) => (
        <button key={action.label} class={action.isDangerous ? "danger" : ""} onClick={() => setCurrent(action)}>
          {action.label}
        </button>
      ))}
      {current && (
        <FormDialog
          class="stack"
          title={current.label}
          label={current.label}
          isDangerous={current.isDangerous}
          submit={run}
          onClose={() => setCurrent(null)}
        >
          <p>{current.question}</p>
        </FormDialog>
      )}
    </>
  );
}

/** A link to a page that changes something, with the look of a button. Readers see none. */
export function ActionLink({ class: look = "", ...link }: LinkProps) {
  return session.can_write ? <Link {...link} class={`button ${look}`} /> : null;
}

/** A button that opens a dialog. Readers see none. */
export function DialogButton({ label, class: look, children }: { label: string; class?: string; children: (close: () => void) => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  if (!session.can_write) return null;
  return (
    <>
      <button class={look} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && children(() => setOpen(false))}
    </>
  );
}

/** A form in a dialog, which closes when `submit` has ended well. */
export function FormDialog({ title, submit, onClose, ...form }: FormProps & { title: string; onClose: () => void }) {
  const send = async (values: FormData, form: HTMLFormElement) => {
    await submit(values, form);
    onClose();
  };
  const close = (
    <button type="button" onClick={onClose}>
      Close
    </button>
  );
  return (
    <Dialog title={title} onClose={onClose}>
      <Form class="stack fields" buttons={close} {...form} submit={send} />
    </Dialog>
  );
}

/** Shows a secret, which cannot be shown again. */
export function SecretDialog(props: { title: string; text: string; onClose: () => void; children: ComponentChildren }) {
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <p>{props.children}</p>
      <pre class="value secret" tabIndex={0}>
        {props.text}
      </pre>
      <div class="buttons">
        <button class="primary" onClick={props.onClose}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}
