import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { type LineStore, LONGEST, parseRange, patternOf, rangeOf, Rows, Search, textOf } from "../model/lines";
import type { Output } from "../ui/output";
import { query, setQuery } from "../ui/router";
import { LogBar } from "./log_bar";
import { LogLine } from "./log_line";

/** Pixels of a row, and of the columns beside a line's text, as in the style sheet. */
const HEIGHT = 20;
const [GUTTER, NARROW_GUTTER] = [146, 44];
/** Browsers limit the height of an element; beyond, the position is scaled. */
const TALLEST = 16_000_000;
/** Rows beyond the visible ones, above and below. */
const SPARE = 20;
/** How many times more of a long line is shown on request. */
const MORE = 16;

/** Whose output it is. */
export interface LogOf {
  id: string;
  run: string;
  isLive: boolean;
}

/**
 * The output of a run: only the lines on the screen are in the document.
 *
 * Chosen lines, search, streams and the wrap switch are in the URL. The view follows the end until the reader scrolls
 * up, and reads earlier output when the reader comes to its beginning.
 */
export function Log({ output, of: subject }: { output: Output; of: LogOf }) {
  const { store, version } = output;
  const text = query.value.get("search") ?? "";
  const isRegex = query.value.get("regex") === "1";
  const stream = query.value.get("stream") ?? "";
  const pattern = useMemo(() => (text === "" ? null : patternOf(text, isRegex)), [text, isRegex]);
  const search = useMemo(() => pattern && new Search(store, pattern), [store, pattern]);
  const hits = useMemo(() => search?.look() ?? [], [search, version]);
  const [target, setTarget] = useState<{ line: number } | null>(null);
  const [hit, setHit] = useState(0);
  const chosen = parseRange(query.value.get("lines") ?? "");
  const isSought = chosen !== null && store.find(chosen[0].stream, chosen[0].offset) < 0;
  useEffect(() => {
    // A search, and a link to lines, need what is not loaded yet.
    if (output.hasMore && !output.isLoading && (text !== "" || isSought)) output.loadMore();
  });
  useEffect(() => {
    if (chosen && !isSought) setTarget({ line: store.find(chosen[0].stream, chosen[0].offset) });
  }, [isSought, store.lines.length > 0]);
  useEffect(() => {
    setHit(0);
    if (hits[0] !== undefined) setTarget({ line: hits[0] });
  }, [pattern, store, hits.length > 0]);
  const go = (step: number) => {
    const next = (hit + step + hits.length) % Math.max(1, hits.length);
    setHit(next);
    if (hits[next] !== undefined) setTarget({ line: hits[next] });
  };
  const onKey = (event: KeyboardEvent) => {
    if (text === "" || event.ctrlKey || event.metaKey || event.altKey || event.key.toLowerCase() !== "n") return;
    event.preventDefault();
    event.stopPropagation();
    go(event.key === "n" ? 1 : -1);
  };
  const panes = stream === "apart" ? ["stdout", "stderr"] : [stream];
  const current = hits[hit] ?? -1;
  return (
    <div class="log" onKeyDown={(event) => !(event.target instanceof HTMLInputElement) && onKey(event)}>
      <LogBar output={output} of={subject} hits={hits} hit={hit} isWrong={text !== "" && pattern === null} onGo={go} />
      <div class={panes.length > 1 ? "log-panes" : ""}>
        {panes.map((name) => (
          <Pane key={name} name={name} output={output} isLive={subject.isLive} hits={hits} current={current} target={target} />
        ))}
      </div>
    </div>
  );
}

interface PaneProps {
  /** The stream; empty: both, in the order of their arrival. */
  name: string;
  output: Output;
  isLive: boolean;
  hits: readonly number[];
  current: number;
  target: { line: number } | null;
}

function Pane({ name, output, isLive, hits, current, target }: PaneProps) {
  const { store, version } = output;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [isFollowing, setFollowing] = useState(true);
  const [seen, setSeen] = useState(0);
  const [size, setSize] = useState({ width: 0, height: 600 });
  const [shown, setShown] = useState<ReadonlyMap<number, number>>(new Map());
  const isWrapped = query.value.get("wrap") === "1";
  const indexes = useMemo(() => (name ? indexesOf(store, name) : null), [store, version, name]);
  const indexAt = (line: number) => (indexes ? indexes[line]! : line);
  const count = indexes ? indexes.length : store.lines.length;
  const mostOf = (index: number) => shown.get(index) ?? LONGEST;
  const columns = isWrapped && size.width > 0 ? Math.max(10, Math.floor((size.width - (innerWidth < 760 ? NARROW_GUTTER : GUTTER)) / widthOfCharacter(box.current!))) : 0;
  const rows = useMemo(
    () => new Rows(count, columns, (line) => Math.min(textOf(store.lines[indexAt(line)]!).length, mostOf(indexAt(line)))),
    [store, version, name, columns, shown],
  );
  const height = Math.min(rows.total * HEIGHT, TALLEST);
  const scale = rows.total * HEIGHT > TALLEST ? (rows.total * HEIGHT - size.height) / (TALLEST - size.height) : 1;
  const first = Math.max(0, rows.lineAt((top * scale) / HEIGHT) - SPARE);
  const last = Math.min(count, rows.lineAt((top * scale + size.height) / HEIGHT) + SPARE);
  // Where the position is scaled, the first visible row begins at the top of the box.
  const start = scale === 1 ? rows.startOf(first) * HEIGHT : top - (Math.floor((top * scale) / HEIGHT) - rows.startOf(first)) * HEIGHT;
  const hitSet = useMemo(() => new Set(hits), [hits, hits.length]);

  useEffect(() => {
    const element = box.current!;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const element = box.current!;
    if (isFollowing) element.scrollTop = element.scrollHeight;
  }, [version, isFollowing, columns]);
  // Earlier lines move the others down: the last line on the screen stays where it is.
  const before = useRef({ store, total: rows.total });
  useLayoutEffect(() => {
    if (before.current.store !== store && !isFollowing) box.current!.scrollTop += (rows.total - before.current.total) * HEIGHT;
    before.current = { store, total: rows.total };
  });
  useEffect(() => {
    if (rows.total * HEIGHT < 2 * size.height) output.loadMore();
  }, [store, output.isLoading]);
  useEffect(() => {
    if (target === null || store.lines.length === 0) return;
    const line = indexes ? indexes.findIndex((index) => index >= target.line) : target.line;
    const element = box.current!;
    element.scrollTop = Math.max(0, (rows.startOf(Math.max(0, line)) * HEIGHT) / scale - element.clientHeight / 3);
    setFollowing(isAtEnd(element));
    setSeen(count);
  }, [target]);

  const onScroll = () => {
    const element = box.current!;
    setTop(element.scrollTop);
    if (isFollowing && !isAtEnd(element)) setSeen(count);
    setFollowing(isAtEnd(element));
    if (element.scrollTop < element.clientHeight) output.loadMore();
  };
  const choose = (index: number, isRange: boolean) => {
    const line = store.lines[index]!;
    const range = parseRange(query.value.get("lines") ?? "");
    const start = isRange && range ? store.find(range[0].stream, range[0].offset) : -1;
    const from = start < 0 ? line : store.lines[Math.min(start, index)]!;
    const to = start < 0 ? line : store.lines[Math.max(start, index)]!;
    const lines = rangeOf(from, to);
    setQuery({ lines: lines === query.value.get("lines") ? "" : lines });
  };
  const range = parseRange(query.value.get("lines") ?? "");
  const [from, to] = range ? range.map((place) => store.find(place.stream, place.offset)) : [-1, -1];
  const items = [];
  for (let line = first; line < last; line++) {
    const index = indexAt(line);
    const label = store.isComplete ? index + 1 : isLive ? null : index - store.lines.length;
    items.push(
      <LogLine
        key={index}
        store={store}
        index={index}
        label={label}
        most={mostOf(index)}
        isChosen={from! >= 0 && index >= from! && index <= to!}
        isHit={hitSet.has(index)}
        isCurrent={index === current}
        onChoose={choose}
        onMore={() => setShown(new Map(shown).set(index, mostOf(index) * MORE))}
      />,
    );
  }
  const unseen = count - seen;
  return (
    <div class="log-pane">
      {name && <p class="quiet">{name === "stderr" ? "Standard error" : "Standard output"}</p>}
      <div class="log-box" ref={box} onScroll={onScroll} tabIndex={0} role="group" aria-label={`Lines of ${name || "the output"}`}>
        <div class={isWrapped ? "log-space wrapped" : "log-space"} style={{ height: `${height}px` }}>
          <div class="log-lines" style={{ transform: `translateY(${start}px)` }}>
            {items}
          </div>
        </div>
        {count === 0 && (
          <p class="empty">{output.isLoading ? "Loading …" : isLive ? "The run has not written any output yet." : "The run wrote no output."}</p>
        )}
      </div>
      {!isFollowing && (
        <button class="follow" onClick={() => setFollowing(true)}>
          {isLive && unseen > 0 ? `${unseen.toLocaleString("en")} new ${unseen === 1 ? "line" : "lines"} ↓` : "To the end ↓"}
        </button>
      )}
    </div>
  );
}

function isAtEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < HEIGHT;
}

let width = 0;

/** Returns the width of a character of the output in pixels. */
function widthOfCharacter(box: HTMLElement): number {
  if (width === 0) {
    const probe = document.createElement("span");
    probe.textContent = "0".repeat(100);
    probe.className = "log-probe";
    box.append(probe);
    width = probe.getBoundingClientRect().width / 100 || 8;
    probe.remove();
  }
  return width;
}

function indexesOf(store: LineStore, stream: string): number[] {
  const indexes: number[] = [];
  store.lines.forEach((line, index) => {
    if (line.stream === stream) indexes.push(index);
  });
  return indexes;
}
