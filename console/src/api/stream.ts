import { EventParser } from "./sse";
import { ApiError, send } from "./client";

/** How a live page is connected. */
export type Connection = "connecting" | "live" | "interrupted" | "ended" | "failed";

export interface Stream {
  /** Closes the stream. */
  close(): void;
}

/** Seconds between attempts to connect again. */
const PAUSES = [1, 2, 5, 10, 30];
/** Milliseconds after which the stream of a hidden tab is closed. */
const HIDDEN = 10_000;

/**
 * Follows a stream of events until its event `end`.
 *
 * Connects again with the last event's id after an interruption, and closes the stream while the tab is hidden: a
 * browser has six connections to a server, and other tabs need them. `onEvent` receives each event, `onConnection` each
 * change of the connection.
 */
export function follow(
  address: string,
  onEvent: (name: string, data: unknown) => void,
  onConnection: (connection: Connection, error?: ApiError) => void,
): Stream {
  let controller: AbortController | null = null;
  let timer = 0;
  let lastId = "";
  let failures = 0;
  let isOver = false;

  async function connect(): Promise<void> {
    controller = new AbortController();
    const { signal } = controller;
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastId) headers["Last-Event-ID"] = lastId;
    try {
      const response = await send("GET", address, undefined, signal, headers);
      onConnection("live");
      failures = 0;
      await read(response);
      if (!signal.aborted) again(0); // the server ends each stream after an hour
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        isOver = true;
        onConnection("failed", error);
        return;
      }
      onConnection("interrupted");
      again(PAUSES[Math.min(failures++, PAUSES.length - 1)] ?? 30);
    }
  }

  async function read(response: Response): Promise<void> {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (const event of parser.push(value)) {
        if (event.id) lastId = event.id;
        onEvent(event.name, JSON.parse(event.data));
        if (event.name === "end") {
          stop();
          onConnection("ended");
          return;
        }
      }
    }
  }

  function again(seconds: number): void {
    if (isOver || document.hidden) return;
    timer = window.setTimeout(() => void connect(), seconds * 1000 * (0.8 + 0.4 * Math.random()));
  }

  function onVisibility(): void {
    clearTimeout(timer);
    if (isOver) return;
    if (document.hidden) timer = window.setTimeout(() => controller?.abort(), HIDDEN);
    else if (controller?.signal.aborted || failures > 0) void connect();
  }

  function stop(): void {
    isOver = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", onVisibility);
    window.removeEventListener("online", onVisibility);
    controller?.abort();
  }

  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", onVisibility);
  onConnection("connecting");
  void connect();
  return { close: stop };
}
