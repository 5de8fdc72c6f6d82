import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";

export interface Loaded<T> {
  data: T | null;
  error: ApiError | null;
  /** Whether `data` may be out of date, because the last request failed. */
  isStale: boolean;
  /** When `data` was read, in milliseconds. */
  at: number;
  reload: () => void;
}

/**
 * Reads data when the page opens, when `key` changes, and every `seconds` while the tab is visible.
 *
 * The data of the last key stays until that of the new one is there. After an error the last data stays, marked as
 * stale, unless the key has changed.
 */
export function useData<T>(key: string, load: (signal: AbortSignal) => Promise<T>, seconds = 5): Loaded<T> {
  const [state, setState] = useState({ key, data: null as T | null, error: null as ApiError | null, at: 0 });
  const [round, setRound] = useState(0);
  const loader = useRef(load);
  loader.current = load;

  useEffect(() => {
    const controller = new AbortController();
    let timer = 0;
    const plan = () => {
      clearTimeout(timer);
      if (seconds > 0 && !document.hidden) timer = window.setTimeout(() => void run(), seconds * 1000);
    };
    const run = async () => {
      clearTimeout(timer);
      try {
        const data = await loader.current(controller.signal);
        if (!controller.signal.aborted) setState({ key, data, error: null, at: Date.now() });
      } catch (error) {
        if (controller.signal.aborted) return;
        setState((last) => ({ ...last, key, data: last.key === key ? last.data : null, error: error as ApiError }));
      }
      plan();
    };
    const onVisibility = () => (document.hidden ? clearTimeout(timer) : void run());
    document.addEventListener("visibilitychange", onVisibility);
    void run();
    return () => {
      controller.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisibility);
    };
  }, [key, seconds, round]);

  const reload = useCallback(() => setRound((last) => last + 1), []);
  const error = state.key === key ? state.error : null;
  return { data: state.data, error, isStale: error !== null && state.data !== null, at: state.at, reload };
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
