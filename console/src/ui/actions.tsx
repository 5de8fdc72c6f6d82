import { useState } from "preact/hooks";
import { session } from "../api/session";
import { FormDialog } from "./form";

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
