import { useEffect, useRef, useState } from "preact/hooks";
import { get } from "../api/client";
import { Dialog, State } from "./parts";
import { navigate } from "./router";

/** Something that the palette opens. */
export interface Place {
  kind: string;
  title: string;
  path: readonly string[];
  query?: Record<string, string>;
  state?: string | null;
}

/** Objects of each kind, and the time in milliseconds that a search waits for another key. */
const MOST = 5;
const PAUSE = 150;

/** Finds objects with a text in their names, by the filters of the lists. */
async function search(text: string, signal: AbortSignal): Promise<Place[]> {
  const page = { contains: text, limit: MOST };
  const [stacks, servers, triggers, runs] = await Promise.all([
    get("/v1/{project}/stacks", {}, page, signal),
    get("/v1/{project}/servers", {}, { name: [`*${text.replace(/[[\]*?]/g, "?")}*`, text], sort: "name", limit: MOST }, signal),
    get("/v1/{project}/software_triggers", {}, page, signal),
    get("/v1/{project}/software_deployments", {}, { ...page, names: true, newest_first: true }, signal),
  ]);
  return [
    ...stacks.stacks.map((one) => ({ kind: "Stack", title: one.stack_name, path: ["stacks", one.stack_name, one.id], state: one.stack_status })),
    ...servers.servers.map((one) => ({ kind: "Server", title: one.name, path: ["servers", one.id], state: one.status })),
    ...triggers.software_triggers.map((one) => ({ kind: "Trigger", title: one.name, path: ["triggers", one.id], state: one.status })),
    ...runs.software_deployments.map((one) => ({
      kind: "Run",
      title: `${one.config_name || one.id} on ${one.server_name ?? one.server_id}`,
      path: ["runs", one.id],
      state: one.status ?? null,
    })),
  ];
}

/** A search for any object, page or action; the keys move in it, and Enter opens. */
export function Palette({ places, onClose }: { places: readonly Place[]; onClose: () => void }) {
  const [text, setText] = useState("");
  const [objects, setObjects] = useState<{ text: string; places: Place[] }>({ text: "", places: [] });
  const [problem, setProblem] = useState("");
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const wanted = text.trim();

  useEffect(() => {
    if (!wanted) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      search(wanted, controller.signal).then(
        (found) => {
          setObjects({ text: wanted, places: found });
          setProblem("");
        },
        (error: unknown) => controller.signal.aborted || setProblem((error as Error).message),
      );
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [wanted]);

  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const fixed = places.filter((place) => words.every((word) => `${place.kind} ${place.title}`.toLowerCase().includes(word)));
  const isSearching = wanted !== "" && objects.text !== wanted && !problem;
  const shown = [...fixed, ...(wanted && !isSearching ? objects.places : [])];
  const current = Math.min(chosen, shown.length - 1);
  useEffect(() => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }), [current, shown.length]);

  const open = (place: Place) => {
    onClose();
    navigate(place.path, place.query);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step) setChosen((current + step + shown.length) % Math.max(1, shown.length));
    else if (event.key === "Enter") {
      if (shown[current] && !isSearching) open(shown[current]);
    } else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="text"
        class="palette-input"
        role="combobox"
        aria-label="Stack, server, trigger, run, page or action"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-autocomplete="list"
        {...(shown[current] ? { "aria-activedescendant": `palette-${current}` } : {})}
        autofocus
        autocomplete="off"
        spellcheck={false}
        placeholder="Stack, server, trigger, run, page or action"
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={onKeyDown}
      />
      <ul class="palette" id="palette-list" ref={list} role="listbox" aria-label="Found">
        {shown.map((place, index) => (
          <li key={`${place.kind} ${place.path.join("/")} ${place.title}`} id={`palette-${index}`} role="option" aria-selected={index === current} onClick={() => open(place)}>
            <span class="quiet">{place.kind}</span>
            <span>{place.title}</span>
            {place.state && <State of={place.state} />}
          </li>
        ))}
      </ul>
      <p class="quiet" role="status">
        {problem || (isSearching ? "Searching …" : shown.length === 0 ? "Nothing matches." : `↑ ↓ choose, Enter opens. At most ${MOST} of each kind are shown.`)}
      </p>
    </Dialog>
  );
}
