import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { session } from "../api/session";
import { Dialog, Problem } from "./parts";

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
  return (
    <>
      {actions.map((action) => (
        <button key={action.label} class={action.isDangerous ? "danger" : ""} onClick={() => setCurrent(action)}>
          {action.label}
        </button>
      ))}
      {current && (
        <Confirmation
          action={current}
          onClose={(isDone) => {
            setCurrent(null);
            if (isDone) onDone();
          }}
        />
      )}
    </>
  );
}

function Confirmation({ action, onClose }: { action: Action; onClose: (isDone: boolean) => void }) {
  const [error, setError] = useState<ApiError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const run = async () => {
    setRunning(true);
    try {
      await action.run();
      onClose(true);
    } catch (problem) {
      setError(problem as ApiError);
      setRunning(false);
    }
  };
  return (
    <Dialog title={action.label} onClose={() => onClose(false)}>
      <p>{action.question}</p>
      {error && <Problem error={error} />}
      <div class="buttons">
        <button class={action.isDangerous ? "danger" : "primary"} disabled={isRunning} onClick={() => void run()}>
          {action.label}
        </button>
        <button onClick={() => onClose(false)}>Leave it</button>
      </div>
    </Dialog>
  );
}
