import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiError, get, type Schemas, send, url } from "../api/client";
import { type Connection, follow } from "../api/stream";
import { LineStore } from "../model/lines";
import { type Live, useConnection } from "./data";

type Chunk = Schemas["OutputChunk"];

const LOGS = "/v1/{project}/software_deployments/{deployment_id}/logs";
/** A position after that of each chunk. */
const END = 2 ** 31 - 1;

export interface Output {
  store: LineStore;
  /** Changes with the lines. */
  version: number;
  isLoading: boolean;
  /** Whether the output that precedes the first line is not loaded. */
  hasMore: boolean;
  live: Live;
  error: ApiError | null;
  /** Reads twice as much of the output as before. */
  loadMore: () => void;
}

/**
 * Reads the end of a run's output, and follows it while `isLive`.
 *
 * `run` is the id of the run's config. What precedes the end is read on request: the lines are made again from twice as
 * many chunks, so that the work grows with the output only. `onStatus` is called when the run's state has changed.
 */
export function useOutput(id: string, run: string, isLive: boolean, onStatus: () => void): Output {
  const state = useRef({ chunks: [] as Chunk[], store: new LineStore(), previous: null as number | null, pages: 1 });
  const [version, setVersion] = useState(0);
  const [isLoading, setLoading] = useState(true);
  const [live, setConnection] = useConnection();
  const [error, setError] = useState<ApiError | null>(null);
  /** The run whose end is read again after its end, because the agent has sent its gaps once more. */
  const [again, setAgain] = useState("");
  const controller = useRef(new AbortController());

  /** Reads pages backwards. Returns the cursor of the first one, after which the stream continues. */
  const read = async (count: number, signal: AbortSignal): Promise<string> => {
    const { current } = state;
    let before = current.previous ?? END;
    let cursor = "";
    let older: Chunk[] = [];
    for (let page = 0; page < count; page++) {
      const answer = await get(LOGS, { deployment_id: id }, { before, run }, signal);
      if (page === 0) cursor = answer.cursor;
      older = [...answer.logs, ...older];
      current.previous = answer.previous;
      if (answer.previous === null) break;
      before = answer.previous;
    }
    current.chunks = [...older, ...current.chunks];
    current.store = new LineStore(current.chunks, current.previous === null);
    setVersion((last) => last + 1);
    return cursor;
  };

  useEffect(() => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    let frame = 0;
    let stop = () => {};
    state.current = { chunks: [], store: new LineStore(), previous: null, pages: 1 };
    setLoading(true);
    setError(null);
    const paint = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setVersion((last) => last + 1);
      });
    };
    const onEvent = (name: string, data: unknown) => {
      if (name === "log") {
        const chunk = data as Chunk;
        if (chunk.config_id !== run) return;
        state.current.chunks.push(chunk);
        state.current.store.add(chunk);
        paint();
      } else if (name === "status" || name === "end") onStatus();
      if (name === "end" && state.current.store.hasLate) setAgain(run);
    };
    const onConnection = (next: Connection, problem?: ApiError) => {
      setConnection(next);
      if (problem) setError(problem);
    };
    const open = async () => {
      const cursor = await read(1, signal);
      setLoading(false);
      const events = url("/v1/{project}/events", {}, { subject: `deployment:${id}` });
      if (isLive && again !== run) stop = follow(events, onEvent, onConnection, cursor);
      else onConnection("ended");
    };
    open().catch((problem: unknown) => {
      if (!signal.aborted) setError(problem as ApiError);
    });
    return () => {
      controller.current.abort();
      stop();
      cancelAnimationFrame(frame);
    };
    // A run that ends keeps its lines and the reader's place: the stream itself knows its end.
  }, [id, run, again]);

  const loadMore = () => {
    if (isLoading || state.current.previous === null) return;
    setLoading(true);
    const { signal } = controller.current;
    const count = state.current.pages;
    state.current.pages *= 2;
    read(count, signal)
      .catch((problem: unknown) => {
        if (!signal.aborted) setError(problem as ApiError);
      })
      .finally(() => setLoading(false));
  };
  const { store, previous } = state.current;
  return { store, version, isLoading, hasMore: previous !== null, live, error, loadMore };
}

/** Reads the stored bytes of a stream of a run. */
export async function readStream(id: string, run: string, stream: string, signal?: AbortSignal): Promise<Blob> {
  const response = await send("GET", url(`${LOGS}/{stream}`, { deployment_id: id, stream }, { run }), undefined, signal);
  return response.blob();
}
