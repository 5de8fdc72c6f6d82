import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { ApiError } from "../api/client";
import type { Connection } from "../api/stream";
import { SYMBOLS, toneOf, wordsOf, type Tone } from "../model/state";
import { durationOf, parseTime, relativeOf } from "../model/time";
import type { Live, Loaded } from "./data";

/** The browser's time zone. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
/** The time in milliseconds, once a second while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

/** A state, as symbol, color and words. */
export function State({ of: state, tone }: { of: string | null | undefined; tone?: Tone }) {
  const shown = tone ?? toneOf(state);
  return (
    <span class={`state ${shown}`}>
      <span class="symbol" aria-hidden="true">
        {SYMBOLS[shown]}
      </span>
      {wordsOf(state)}
    </span>
  );
}

/** A time relative to now, with the absolute one in the browser's zone on hover. */
export function Time({ at, none = "never" }: { at: string | null | undefined; none?: string }) {
  if (!at) return <span class="quiet">{none}</span>;
  const time = parseTime(at);
  return (
    <time dateTime={new Date(time).toISOString()} title={`${new Date(time).toLocaleString()} (${ZONE})`}>
      <Relative to={time} />
    </time>
  );
}

/** Only this text changes each second: a table has many times. */
function Relative({ to: time }: { to: number }) {
  return <>{relativeOf(time, now.value)}</>;
}

/** The time between two moments; until now if the second is missing. */
export function Duration({ from, to }: { from: string | null | undefined; to?: string | null | undefined }) {
  if (!from) return <span class="quiet">–</span>;
  return <span class="number">{durationOf((to ? parseTime(to) : now.value) - parseTime(from))}</span>;
}

/** An error in a sentence, with the id by which the server's log names the request. */
export function Problem({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <div class="problem" role="alert">
      <p>{error.message}</p>
      {error instanceof ApiError && error.requestId && <p class="quiet">Request {error.requestId}</p>}
      {retry && <button onClick={retry}>Try again</button>}
    </div>
  );
}

/** Stands where something is loaded. */
export function Loading() {
  return (
    <p class="quiet loading" role="status">
      Loading …
    </p>
  );
}

/** Milliseconds without a connection after which a state no longer counts as current. */
const PATIENCE = 2000;

const REASONS: Partial<Record<Connection, string>> = {
  interrupted: "The connection to the server is interrupted.",
  paused: "Updates are paused, because 4 other windows are live. This window continues when you focus it.",
  held: "No updates arrive: a proxy holds the stream back (docs/operations.md), or the server is very slow.",
  failed: "The server sends no updates.",
};

/** A part of a page that is live: dimmed and dated while nothing keeps it current. */
export function LiveState({ connection, since, children }: Live & { children: ComponentChildren }) {
  const reason = REASONS[connection];
  const isLost = reason !== undefined && (connection !== "interrupted" || now.value - since > PATIENCE);
  return (
    <>
      {isLost && (
        <p class="banner" role="status" data-connection={connection}>
          {reason} This is the state of {durationOf(now.value - since)} ago.
        </p>
      )}
      <div class={isLost ? "stale" : ""}>{children}</div>
    </>
  );
}

/** A part of a page that shows loaded data: an error without data, dimmed data after a failed update. */
export function Data<T>({ of: loaded, children }: { of: Loaded<T>; children: (data: T) => ComponentChildren }) {
  if (loaded.data === null) {
    if (loaded.error) return <Problem error={loaded.error} retry={loaded.reload} />;
    return <Loading />;
  }
  const shown = (
    <>
      {loaded.isStale && (
        <p class="banner" role="status">
          {loaded.error?.message} This is the state of {relativeOf(loaded.at, now.value)}.
        </p>
      )}
      <div class={loaded.isStale ? "stale" : ""}>{children(loaded.data)}</div>
    </>
  );
  return loaded.live && !loaded.isStale ? <LiveState {...loaded.live}>{shown}</LiveState> : shown;
}

/** The head of a page: its title, its state, and its actions. */
export function Head({ title, kind, children }: { title: string; kind?: string; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Stoker`;
  }, [title]);
  return (
    <header class="head">
      <div>
        {kind && <p class="kind">{kind}</p>}
        <h1>{title}</h1>
      </div>
      <div class="actions">{children}</div>
    </header>
  );
}

/** A number with a symbol and a label, in a box. */
export function Count({ of: count, symbol, label }: { of: number; symbol: string; label: string }) {
  return (
    <>
      <span class="tile-count">
        <span class="symbol" aria-hidden="true">
          {symbol}
        </span>
        {count.toLocaleString("en")}
      </span>
      <span class="tile-label">{label}</span>
    </>
  );
}

/** Names and values. Values that are undefined are left out. */
export function Facts({ of: facts }: { of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) =>
        value === undefined ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value ?? <span class="quiet">none</span>}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** A section of a page. */
export function Card({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }) {
  const id = `card-${title.toLowerCase().replace(/\W+/g, "-")}`;
  return (
    <section class="card" aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {aside}
      </div>
      {children}
    </section>
  );
}

/** What a list shows that is empty: why, and the next step. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <p class="empty">{children}</p>;
}

/** A modal dialog, which Escape closes if `onClose` is given. */
export function Dialog({ title, onClose, children }: { title: string; onClose?: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const cancel = (event: Event) => {
    event.preventDefault();
    onClose?.();
  };
  return (
    <dialog ref={dialog} aria-labelledby="dialog-title" onCancel={cancel}>
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

interface RowProps {
  name: ComponentChildren;
  title?: string;
  time?: string | null;
  /** A second line. */
  detail?: string;
  children?: ComponentChildren;
}

/** An entry of a list: a name, what is said of it, and its time. */
export function Row({ name, title, time, detail, children }: RowProps) {
  return (
    <li>
      <span class="row-name">{name}</span>
      <span class="row-text" title={title}>
        {children}
      </span>
      {time !== undefined && (
        <span class="row-time">
          <Time at={time} />
        </span>
      )}
      {detail && <span class="row-detail">{detail}</span>}
    </li>
  );
}

/** Named values as facts. */
export function Values({ of: values, none }: { of: Readonly<Record<string, unknown>>; none: string }) {
  const entries = Object.entries(values);
  if (entries.length === 0) return <Empty>{none}</Empty>;
  return <Facts of={entries.map(([name, value]) => [name, <Value of={value} />] as const)} />;
}

/** Values as indented JSON; a text as it is. */
export function Value({ of: value }: { of: unknown }) {
  if (value === null || value === undefined) return <span class="quiet">none</span>;
  const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
  return text.includes("\n") || text.length > 80 ? <pre class="value" tabIndex={0}>{text}</pre> : <span class="mono">{text}</span>;
}

/** A text of several lines with their numbers. */
export function NumberedText({ of: text, label }: { of: string; label: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <pre class="numbered" tabIndex={0} role="group" aria-label={label}>
      {lines.map((line, index) => (
        <span key={index} class="numbered-line">
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
