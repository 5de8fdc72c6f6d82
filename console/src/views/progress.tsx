import type { Schemas } from "../api/client";

type Counts = Pick<Schemas["SoftwareTrigger"], "total" | "running" | "complete" | "failed" | "cancelled">;

/** Returns how many targets of a trigger have ended. */
export function endedOf(trigger: Counts): number {
  return trigger.complete + trigger.failed + trigger.cancelled;
}

/** How many targets of a trigger have ended, and how. */
export function Progress({ of: trigger }: { of: Counts }) {
  const ended = endedOf(trigger);
  const parts = [
    ["good", trigger.complete],
    ["bad", trigger.failed],
    ["off", trigger.cancelled],
    ["busy", trigger.running],
  ] as const;
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label="Ended runs"
      aria-valuemin={0}
      aria-valuemax={trigger.total}
      aria-valuenow={ended}
      aria-valuetext={`${ended} of ${trigger.total} have ended, ${trigger.failed} failed`}
    >
      {parts.map(([tone, count]) => (
        <span key={tone} class={`part ${tone}`} style={{ width: `${(100 * count) / Math.max(1, trigger.total)}%` }} />
      ))}
    </div>
  );
}
