import type { ComponentChildren } from "preact";
import type { Connection } from "../api/stream";
import { durationOf } from "../model/time";
import { now } from "./clock";

/** Milliseconds without a connection after which a state no longer counts as current. */
const PATIENCE = 2000;

/** A part of a page that is live: dimmed and dated while the connection is interrupted. */
export function LiveState({ connection, since, children }: { connection: Connection; since: number; children: ComponentChildren }) {
  const isLost = connection === "interrupted" && now.value - since > PATIENCE;
  return (
    <>
      {isLost && (
        <p class="banner" role="status">
          The connection to the server is interrupted. Shown: the state of {durationOf(now.value - since)} ago.
        </p>
      )}
      <div class={isLost ? "stale" : ""}>{children}</div>
    </>
  );
}
