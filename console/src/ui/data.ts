import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { type Answer, type ApiError, get, type GetPath, type GetQuery, type Names, url } from "../api/client";
import { type Connection, follow } from "../api/stream";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  /** Whether `data` may be out of date, because the last request failed. */
  isStale: boolean;
  /** When `data` was read, in milliseconds. */
  at: number;
  reload: () => void;
  /** The stream that keeps `data` current. */
  live?: Live | undefined;
}

/** The connection of a stream, and when it has changed, in milliseconds. */
export interface Live {
  connection: Connection;
  since: number;
}

/** Keeps the connection of a stream. */
export function useConnection(): [Live, (connection: Connection) => void] {
  const [live, setLive] = useState<Live>(() => ({ connection: "connecting", since: Date.now() }));
  return [live, (connection) => setLive({ connection, since: Date.now() })];
}

/** Milliseconds for which the first read waits for the stream, so that no change between the two is lost. */
const PATIENCE = 250;
/** The shortest pause between two reads in milliseconds, and as a multiple of the duration of a read. */
const PAUSE = 1000;
const SHARE = 4;

/**
 * Reads data when the page opens, when `key` changes, and at each change.
 *
 * `changes` are the subjects of a stream whose events announce changes, or seconds after which the data is read again
 * while the tab is visible. `take` returns the data that an event contains; null: it has to be read. The data of the
 * last key stays until that of the new one is there. After an error the last data stays, marked as stale, unless the key
 * has changed.
 */
export function useData<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  changes: number | readonly string[] = 5,
  take: (name: string, data: unknown) => T | null = () => null,
): Loaded<T> {
  const [state, setState] = useState({ key, data: null as T | null, error: null as ApiError | null, at: 0 });
  const [live, setConnection] = useConnection();
  const current = useRef({ load, take, reload: () => {} });
  Object.assign(current.current, { load, take });
  const subjects = typeof changes === "number" ? "" : changes.join(" ");
  const seconds = typeof changes === "number" ? changes : 0;

  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    let restedAt = 0;
    let isLoading = false;
    let isDue = false;
    const plan = (milliseconds: number) => {
      clearTimeout(timer);
      isDue = isLoading;
      if (!isLoading) timer = window.setTimeout(() => void run(), milliseconds);
    };
    const planRested = () => plan(Math.max(0, restedAt - performance.now()));
    const run = async () => {
      isLoading = true;
      const began = performance.now();
      try {
        const data = await current.current.load(controller.signal);
        if (!controller.signal.aborted) setState({ key, data, error: null, at: Date.now() });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState((last) => ({ ...last, key, data: last.key === key ? last.data : null, error: error as ApiError }));
      }
      isLoading = false;
      restedAt = performance.now() + Math.max(PAUSE, SHARE * (performance.now() - began));
      if (isDue) planRested();
      else if (seconds > 0 && !document.hidden) plan(seconds * 1000);
    };
    const onEvent = (name: string, event: unknown) => {
      const data = current.current.take(name, event);
      if (data === null) return planRested();
      clearTimeout(timer);
      setState({ key, data, error: null, at: Date.now() });
    };
    const onVisibility = () => (document.hidden ? clearTimeout(timer) : plan(0));
    current.current.reload = () => plan(0);
    plan(subjects ? PATIENCE : 0);
    let close = () => document.removeEventListener("visibilitychange", onVisibility);
    if (subjects) {
      const address = url("/v1/{project}/events", {}, { subject: subjects.split(" ") });
      close = follow(address, onEvent, setConnection);
    } else document.addEventListener("visibilitychange", onVisibility);
    return () => {
      controller.abort();
      clearTimeout(timer);
      close();
    };
  }, [key, seconds, subjects]);

  const reload = useCallback(() => current.current.reload(), []);
  const error = state.key === key ? state.error : null;
  return { data: state.data, error, isStale: error !== null && state.data !== null, at: state.at, reload, live: subjects ? live : undefined };
}

/** Reads a path of the API as `useData` does, and again when `round` changes; the path null: nothing yet. */
export function useGet<P extends GetPath>(
  path: P | null,
  names: Names = {},
  query: GetQuery<P> = {} as GetQuery<P>,
  changes?: number | readonly string[],
  round = 0,
): Loaded<Answer<P>> {
  const key = path === null ? "" : `${url(path, names, query as Record<string, unknown>)} ${round}`;
  return useData(key, async (signal) => (path === null ? null : get(path, names, query, signal)) as Answer<P>, path === null ? 0 : changes);
}

/** Reads all pages of a list. `load` returns a page after a marker. */
export async function loadAll<T>(
  load: (marker: string | undefined) => Promise<T[]>,
  markerOf: (item: T) => string,
  limit: number,
): Promise<T[]> {
  const items: T[] = [];
  for (;;) {
    const last = items[items.length - 1];
    const page = await load(last && markerOf(last));
    items.push(...page);
    if (page.length < limit) return items;
  }
}
