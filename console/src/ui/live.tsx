import type { ComponentChildren } from "preact";
import { type Connection, isUpgraded } from "../api/stream";
import { durationOf } from "../model/time";
import { now } from "./clock";

/** Milliseconds without a connection after which a state no longer counts as current. */
const PATIENCE = 2000;

const REASONS: Partial<Record<Connection, string>> = {
  interrupted: "The connection to the server is interrupted.",
  paused: "Updates are paused: 4 windows are live. This one continues when you choose it.",
  held: "No updates arrive: a proxy holds the stream back (docs/operations.md), or the server is very slow.",
  failed: "The server sends no updates.",
};

/** A part of a page that is live: dimmed and dated while nothing keeps it current. */
export function LiveState({ connection, since, children }: { connection: Connection; since: number; children: ComponentChildren }) {
  const reason = REASONS[connection];
  const isLost = reason !== undefined && (connection !== "interrupted" || now.value - since > PATIENCE);
  return (
    <>
      {isLost && (
        <p class="banner" role="status" data-connection={connection}>
          {reason} Shown: the state of {durationOf(now.value - since)} ago.
        </p>
      )}
      <div class={isLost ? "stale" : ""}>{children}</div>
    </>
  );
}

/** Says that the server was upgraded while the page was open. */
export function Upgraded() {
  if (!isUpgraded.value) return null;
  return (
    <p class="banner upgraded" role="status">
      Stoker was upgraded. <button onClick={() => location.reload()}>Reload</button>
    </p>
  );
}
