import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type LineStore, parseRange } from "../model/lines";
import { bytesOf, parseTime } from "../model/time";
import { query, setQuery } from "../ui/router";

const HEIGHT = 20;
/** Browsers limit the height of an element; beyond, the position is scaled. */
const TALLEST = 16_000_000;

/**
 * The output of a run: only the lines on the screen are in the document.
 *
 * The range of chosen lines, the search and the streams are in the URL. `version` changes with the lines. The view
 * follows the end until the reader scrolls up.
 */
export function Log({ store, version, isLive }: { store: LineStore; version: number; isLive: boolean }) {
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [isFollowing, setFollowing] = useState(true);
  const stream = query.value.get("stream") ?? "";
  const search = query.value.get("search") ?? "";
  const range = parseRange(query.value.get("lines") ?? "");
  const shown = useMemo(() => (stream ? indexesOf(store, stream) : null), [store, version, stream]);
  const count = shown ? shown.length : store.lines.length;
  const hits = useMemo(() => store.search(search), [store, version, search]);
  const height = Math.min(count * HEIGHT, TALLEST);
  const scale = count * HEIGHT > TALLEST ? (count * HEIGHT) / TALLEST : 1;
  const first = Math.max(0, Math.floor((top * scale) / HEIGHT) - 10);
  const last = Math.min(count, first + 90);

  const scrollTo = (index: number) => {
    setFollowing(false);
    const element = box.current;
    const row = shown ? Math.max(0, shown.indexOf(index)) : index;
    if (element) element.scrollTop = Math.max(0, (row * HEIGHT) / scale - element.clientHeight / 3);
  };
  useLayoutEffect(() => {
    if (isFollowing && !range && box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [version, isFollowing]);
  useEffect(() => {
    if (range) scrollTo(range[0] - 1);
  }, [store.lines.length > 0]);

  const onScroll = () => {
    const element = box.current!;
    setTop(element.scrollTop);
    setFollowing(element.scrollHeight - element.scrollTop - element.clientHeight < HEIGHT);
  };
  const choose = (line: number, event: MouseEvent) => {
    const from = event.shiftKey && range ? Math.min(range[0], line) : line;
    const to = event.shiftKey && range ? Math.max(range[0], line) : line;
    const isSame = range && range[0] === from && range[1] === to;
    setQuery({ lines: isSame ? "" : from === to ? `${from}` : `${from}-${to}` });
  };
  const rows = [];
  for (let row = first; row < last; row++) {
    const index = shown ? shown[row]! : row;
    rows.push(<LogLine key={index} store={store} index={index} range={range} isHit={hits.includes(index)} onChoose={choose} />);
  }
  return (
    <div class="log">
      <LogBar store={store} hits={hits} stream={stream} search={search} onGo={scrollTo} />
      <div class="log-box" ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label="Lines of the output">
        <div class="log-space" style={{ height: `${height}px` }}>
          <div class="log-lines" style={{ transform: `translateY(${(first * HEIGHT) / scale}px)` }}>
            {rows}
          </div>
        </div>
        {count === 0 && <p class="empty">{isLive ? "The run has not written anything yet." : "The run wrote nothing."}</p>}
      </div>
      {!isFollowing && (
        <button class="follow" onClick={() => setFollowing(true)}>
          {isLive ? "Follow the end ↓" : "To the end ↓"}
        </button>
      )}
    </div>
  );
}

function LogBar(props: {
  store: LineStore;
  hits: readonly number[];
  stream: string;
  search: string;
  onGo: (line: number) => void;
}) {
  const { store, hits, stream, search, onGo } = props;
  const [hit, setHit] = useState(0);
  const go = (step: number) => {
    const next = (hit + step + hits.length) % Math.max(1, hits.length);
    setHit(next);
    if (hits[next] !== undefined) onGo(hits[next]);
  };
  const change = (text: string) => {
    setQuery({ search: text });
    setHit(0);
    const first = store.search(text)[0];
    if (first !== undefined) onGo(first);
  };
  return (
    <div class="log-bar">
      <label class="filter">
        <span>Search</span>
        <input
          type="search"
          class="text-filter"
          value={search}
          onInput={(event) => change(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Enter" && go(event.shiftKey ? -1 : 1)}
        />
      </label>
      <span class="quiet" role="status">
        {search ? (hits.length > 0 ? `${hit + 1} of ${hits.length} lines` : "not in the output") : `${store.lines.length} lines`}
      </span>
      <div class="pills" role="group" aria-label="Streams">
        {["", "stdout", "stderr"].map((name) => (
          <button key={name} class="pill" aria-pressed={stream === name} onClick={() => setQuery({ stream: name })}>
            {name || "both"}
          </button>
        ))}
      </div>
      <button onClick={() => download(store)}>Download</button>
    </div>
  );
}

function LogLine(props: {
  store: LineStore;
  index: number;
  range: [number, number] | null;
  isHit: boolean;
  onChoose: (line: number, event: MouseEvent) => void;
}) {
  const { store, index, range, isHit, onChoose } = props;
  const line = store.lines[index]!;
  const number = index + 1;
  const isChosen = range !== null && number >= range[0] && number <= range[1];
  const classes = ["line", line.stream, isChosen && "chosen", isHit && "hit"].filter(Boolean).join(" ");
  const cut = store.cut(index);
  return (
    <div class={classes}>
      <button class="line-number" tabIndex={-1} aria-label={`Line ${number}`} onClick={(event) => onChoose(number, event)}>
        {number}
      </button>
      <span class="line-time" title={line.time}>
        {new Date(parseTime(line.time)).toLocaleTimeString("en-GB")}
      </span>
      {line.gap > 0 ? (
        <span class="gap">… {bytesOf(line.gap)} of this output are not stored …</span>
      ) : (
        <span class="line-text">
          {store.spans(index).map((span, place) => (
            <span key={place} class={span.style}>
              {span.text}
            </span>
          ))}
          {cut > 0 && <span class="gap"> … {cut.toLocaleString("en")} more characters: download the output</span>}
        </span>
      )}
    </div>
  );
}

function indexesOf(store: LineStore, stream: string): number[] {
  const indexes: number[] = [];
  store.lines.forEach((line, index) => {
    if (line.stream === stream) indexes.push(index);
  });
  return indexes;
}

function download(store: LineStore): void {
  const text = store.lines.map((line) => (line.gap > 0 ? `… ${line.gap} bytes are not stored …` : line.text)).join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text, "\n"], { type: "text/plain" }));
  link.download = "output.txt";
  link.click();
  URL.revokeObjectURL(link.href);
}
