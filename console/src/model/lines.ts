import { parseLine, plainStyle, stripLine, type Span, type Style } from "./ansi";

/** A chunk of a run's output, as the API returns it. */
export interface Chunk {
  stream: string;
  offset: number;
  size: number;
  data: string;
  time: string;
}

export interface Line {
  stream: string;
  text: string;
  time: string;
  /** The position of the line's first byte in its stream. */
  offset: number;
  /** Bytes that the server has not kept, instead of a text; 0 for a line of output. */
  gap: number;
}

/** Characters of a line that are shown at first. */
export const LONGEST = 4096;
/** Lines between two remembered styles, so that any line can be drawn without those before it. */
const STYLE_EVERY = 500;

interface StreamState {
  /** The index of the line that the next chunk continues; -1: none. */
  open: number;
  /** The offset at which the next chunk should begin. */
  next: number;
}

/**
 * The lines of a run's output, from chunks of several streams in the order in which they arrived.
 *
 * A line that several chunks make up is one line. Where a stream's offsets leave a gap, a line says how many bytes are
 * missing. If the chunks are not those of the beginning, `isComplete` is false.
 */
export class LineStore {
  readonly lines: Line[] = [];
  /** Whether a chunk came after a later one: what it fills stands as a gap. */
  hasLate = false;
  private readonly streams = new Map<string, StreamState>();
  private styles: Style[] = [];

  constructor(
    chunks: readonly Chunk[] = [],
    readonly isComplete = true,
  ) {
    for (const chunk of chunks) this.add(chunk);
  }

  /** The number of the first lines that no later chunk can change. */
  get settled(): number {
    return Math.min(this.lines.length, ...[...this.streams.values()].map(({ open }) => (open < 0 ? Infinity : open)));
  }

  /** Adds a chunk. A chunk that was added before is ignored. */
  add(chunk: Chunk): void {
    const state = this.streams.get(chunk.stream) ?? { open: -1, next: this.isComplete ? 0 : chunk.offset };
    this.streams.set(chunk.stream, state);
    if (chunk.offset < state.next) {
      this.hasLate = true;
      return;
    }
    if (chunk.offset > state.next) {
      this.lines.push({ stream: chunk.stream, text: "", time: chunk.time, offset: state.next, gap: chunk.offset - state.next });
      state.open = -1;
    }
    state.next = chunk.offset + chunk.size;
    const isPlain = chunk.data.length === chunk.size;
    let offset = chunk.offset;
    const parts = chunk.data.split("\n");
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1;
      if (isLast && part === "") return;
      this.append(state, chunk, part, offset);
      offset += (isPlain ? part.length : new TextEncoder().encode(part).length) + 1;
      if (!isLast) state.open = -1;
    });
  }

  private append(state: StreamState, chunk: Chunk, text: string, offset: number): void {
    const open = this.lines[state.open];
    if (open) {
      open.text += text;
      this.styles.length = Math.min(this.styles.length, Math.floor(state.open / STYLE_EVERY) + 1);
      return;
    }
    this.lines.push({ stream: chunk.stream, text, time: chunk.time, offset, gap: 0 });
    state.open = this.lines.length - 1;
  }

  /** Returns the index of the line that contains this byte of a stream; -1 if it is not there. */
  find(stream: string, offset: number): number {
    return this.lines.findLastIndex((line) => line.stream === stream && line.offset <= offset);
  }

  /** Returns the spans of a line's first characters, with the style that the lines before it have left. */
  spans(index: number, most = LONGEST): Span[] {
    const style = { ...this.styleBefore(index) };
    return parseLine(visible(this.lines[index]?.text ?? "").slice(0, most), style);
  }

  /** Returns the number of the characters of a line beyond the first ones. */
  cut(index: number, most = LONGEST): number {
    return Math.max(0, visible(this.lines[index]?.text ?? "").length - most);
  }

  private styleBefore(index: number): Style {
    const block = Math.floor(index / STYLE_EVERY);
    if (this.styles.length === 0) this.styles.push(plainStyle());
    while (this.styles.length <= block) {
      const last = this.styles.length - 1;
      this.styles.push(this.advance(this.styles[last]!, last * STYLE_EVERY, (last + 1) * STYLE_EVERY));
    }
    return this.advance(this.styles[block]!, block * STYLE_EVERY, index);
  }

  private advance(style: Style, from: number, to: number): Style {
    const result = { ...style };
    for (let index = from; index < to; index++) {
      const text = this.lines[index]?.text ?? "";
      if (text.includes("\x1b")) parseLine(text, result);
    }
    return result;
  }
}

/** The lines that match a pattern. Each look continues where the last one has ended. */
export class Search {
  readonly hits: number[] = [];
  private next = 0;

  constructor(
    private readonly store: LineStore,
    private readonly pattern: RegExp,
  ) {}

  /** Looks at the lines that are new or may have changed, and returns the indexes of all hits. */
  look(): readonly number[] {
    while (this.hits.length > 0 && this.hits.at(-1)! >= this.next) this.hits.pop();
    for (let index = this.next; index < this.store.lines.length; index++) {
      if (this.pattern.test(textOf(this.store.lines[index]!))) this.hits.push(index);
    }
    this.next = this.store.settled;
    return this.hits;
  }
}

/** Returns the pattern of a search, in any case; null for a text that is no regular expression. */
export function patternOf(text: string, isRegex: boolean): RegExp | null {
  try {
    return new RegExp(isRegex ? text : text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
  } catch {
    return null;
  }
}

/** Returns a line's text as a terminal without colors would show it. */
export function textOf(line: Line): string {
  return line.gap > 0 ? `[${line.gap} bytes are not stored]` : stripLine(visible(line.text));
}

/** Returns the lines of a text as a terminal without colors would show them. */
export function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => visible(stripLine(line)));
}

/** Returns what a terminal would show of a line: a carriage return begins it again. */
export function visible(text: string): string {
  if (!text.includes("\r")) return text;
  const end = text.endsWith("\r") ? text.length - 1 : text.length;
  const start = text.lastIndexOf("\r", end - 1);
  return text.slice(start + 1, end);
}

/** A byte of a stream. */
export interface Place {
  stream: string;
  offset: number;
}

/** Parses chosen lines, such as "stdout@52344" or "stdout@0-stderr@120"; null if the text names none. */
export function parseRange(text: string): [Place, Place] | null {
  const match = /^(stdout|stderr)@(\d+)(?:-(?:(stdout|stderr)@)?(\d+))?$/.exec(text);
  if (!match) return null;
  const first = { stream: match[1]!, offset: Number(match[2]) };
  return [first, match[4] === undefined ? first : { stream: match[3] ?? first.stream, offset: Number(match[4]) }];
}

/** Returns the text of chosen lines, by their first and their last one. Positions in streams survive cuts of the output. */
export function rangeOf(first: Place, last: Place): string {
  const start = `${first.stream}@${first.offset}`;
  if (first.stream === last.stream && first.offset === last.offset) return start;
  return first.stream === last.stream ? `${start}-${last.offset}` : `${start}-${last.stream}@${last.offset}`;
}

/** The rows on the screen that lines take: one each, or as many as a width needs. */
export class Rows {
  private readonly ends: Float64Array | null;

  /** `lengths` are the numbers of the characters of the lines; without `width` each line is one row. */
  constructor(
    readonly count: number,
    width: number,
    lengthOf: (line: number) => number,
  ) {
    this.ends = width > 0 ? new Float64Array(count) : null;
    let end = 0;
    if (this.ends) for (let line = 0; line < count; line++) this.ends[line] = end += Math.max(1, Math.ceil(lengthOf(line) / width));
  }

  get total(): number {
    return this.ends ? (this.ends[this.count - 1] ?? 0) : this.count;
  }

  /** Returns the first row of a line. */
  startOf(line: number): number {
    return this.ends ? (this.ends[line - 1] ?? 0) : line;
  }

  /** Returns the line of a row. */
  lineAt(row: number): number {
    if (!this.ends) return Math.min(Math.floor(row), this.count);
    let [low, high] = [0, this.count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ends[middle]! <= row) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
