import { signal } from "@preact/signals";
import { ApiError, send } from "./client";
import { session } from "./session";
import { Slot } from "./slots";
import { EventParser } from "./sse";

/**
 * How a live page is connected.
 *
 * `paused`: other windows have the streams that a browser may open. `held`: the server answers, but nothing arrives, as
 * when a proxy collects a response before it passes it on.
 */
export type Connection = "connecting" | "live" | "interrupted" | "paused" | "held" | "ended" | "failed";

/** Whether the server has another version than this page. */
export const isUpgraded = signal(false);

/** Seconds between attempts to connect again. */
const PAUSES = [1, 2, 5, 10, 30];
/** Milliseconds after which the stream of a hidden tab is closed. */
const HIDDEN = 10_000;
/** Milliseconds without a first byte after which a proxy seems to hold the stream back. */
const HELD = 5_000;
/** Milliseconds without a byte after which a connection counts as lost. The server sends one each 15 s. */
const SILENCE = 40_000;
/** Milliseconds after which a paused window looks for a free slot. */
const SLOT = 3_000;

/**
 * Follows a stream of events until the `end` of each of its subjects.
 *
 * Connects again with the last event's id after an interruption, and closes the stream while the tab is hidden: a
 * browser has few connections to a server, and other tabs need them. `onEvent` receives each event, `hello` after each
 * connection, and `onConnection` each change of the connection. `cursor` is that of a list which the stream continues. Returns a function
 * that closes the stream.
 */
export function follow(
  address: string,
  onEvent: (name: string, data: unknown) => void,
  onConnection: (connection: Connection, error?: ApiError) => void,
  cursor = "",
): () => void {
  const subjects = new URL(address, location.href).searchParams.getAll("subject");
  const ended = new Set<string>();
  const slot = new Slot(() => {
    report("paused");
    controller?.abort();
    again(SLOT);
  });
  let controller: AbortController | null = null;
  let last: Connection | null = null;
  let timer = 0;
  let hiding = 0;
  let silence = 0;
  let lastId = cursor;
  let failures = 0;
  let isOver = false;
  let isOpen = false;

  function report(connection: Connection, error?: ApiError): void {
    if (connection !== last) onConnection((last = connection), error);
  }

  async function connect(mayRob = false): Promise<void> {
    if (isOver || isOpen) return;
    isOpen = true;
    clearTimeout(timer);
    try {
      if (await slot.take(mayRob)) await open();
      else {
        report("paused");
        again(SLOT);
      }
    } finally {
      isOpen = false;
    }
  }

  async function open(): Promise<void> {
    controller = new AbortController();
    const { signal: aborted } = controller;
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (lastId) headers["Last-Event-ID"] = lastId;
    silence = window.setTimeout(() => report("held"), HELD);
    const began = performance.now();
    try {
      await read(await send("GET", address, undefined, aborted, headers));
      // The server ends each stream after an hour, which is no interruption.
      if (!aborted.aborted) again(performance.now() - began > HELD ? 0 : 1000);
    } catch (error) {
      if (aborted.aborted && aborted.reason !== SILENCE) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
        stop();
        report("failed", error);
        return;
      }
      report("interrupted");
      again(1000 * (PAUSES[Math.min(failures++, PAUSES.length - 1)] ?? 30));
    } finally {
      clearTimeout(silence);
      controller?.abort(); // also of a response that was not understood, which would keep its connection
    }
  }

  async function read(response: Response): Promise<void> {
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = window.setTimeout(() => controller?.abort(SILENCE), SILENCE);
      for (const event of parser.push(value)) {
        if (event.id) lastId = event.id;
        const data = JSON.parse(event.data) as { subject?: string; version?: string };
        if (event.name === "hello") {
          failures = 0;
          isUpgraded.value ||= data.version !== session.version;
          report("live");
        }
        onEvent(event.name, data);
        if (event.name === "end" && ended.add(data.subject ?? "").size >= subjects.length) {
          stop();
          report("ended");
          return;
        }
      }
    }
  }

  function again(milliseconds: number): void {
    clearTimeout(timer);
    if (isOver || document.hidden) return;
    timer = window.setTimeout(() => void connect(), milliseconds * (0.8 + 0.4 * Math.random()));
  }

  function hide(): void {
    clearTimeout(timer);
    report("interrupted");
    controller?.abort();
    slot.free();
  }

  function onVisibility(): void {
    clearTimeout(hiding);
    if (document.hidden) hiding = window.setTimeout(hide, HIDDEN);
    else void connect(document.hasFocus());
  }

  function onFocus(): void {
    void connect(true);
  }

  function stop(): void {
    isOver = true;
    for (const one of [timer, hiding, silence]) clearTimeout(one);
    document.removeEventListener("visibilitychange", onVisibility);
    window.removeEventListener("online", onVisibility);
    window.removeEventListener("focus", onFocus);
    controller?.abort();
    slot.free();
  }

  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", onVisibility);
  window.addEventListener("focus", onFocus);
  report("connecting");
  void connect(document.hasFocus());
  if (document.hidden) onVisibility();
  return stop;
}
