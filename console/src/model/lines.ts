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
  /** Bytes that the server has not kept, instead of a text; 0 for a line of output. */
  gap: number;
}

/** Characters of a line that are shown; the rest only counts. */
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
 * missing.
 */
export class LineStore {
  readonly lines: Line[] = [];
  private readonly streams = new Map<string, StreamState>();
  private styles: Style[] = [];

  /** Adds a chunk. A chunk that was added before is ignored. */
  add(chunk: Chunk): void {
    const state = this.streams.get(chunk.stream) ?? { open: -1, next: 0 };
    this.streams.set(chunk.stream, state);
    if (chunk.offset < state.next) return;
    if (chunk.offset > state.next) {
      this.lines.push({ stream: chunk.stream, text: "", time: chunk.time, gap: chunk.offset - state.next });
      state.open = -1;
    }
    state.next = chunk.offset + chunk.size;
    const parts = chunk.data.split("\n");
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1;
      if (isLast && part === "") return;
      this.append(state, chunk, part);
      if (!isLast) state.open = -1;
    });
  }

  private append(state: StreamState, chunk: Chunk, text: string): void {
    const open = this.lines[state.open];
    if (open) {
      open.text += text;
      this.styles.length = Math.min(this.styles.length, Math.floor(state.open / STYLE_EVERY) + 1);
      return;
    }
    this.lines.push({ stream: chunk.stream, text, time: chunk.time, gap: 0 });
    state.open = this.lines.length - 1;
  }

  /** Returns the spans of a line, with the style that the lines before it have left. */
  spans(index: number): Span[] {
    const style = { ...this.styleBefore(index) };
    const text = visible(this.lines[index]?.text ?? "");
    return parseLine(text.length > LONGEST ? text.slice(0, LONGEST) : text, style);
  }

  /** Returns the number of the characters of a line that are not shown. */
  cut(index: number): number {
    return Math.max(0, (this.lines[index]?.text.length ?? 0) - LONGEST);
  }

  /** Returns the indexes of the lines that contain a text, in any case. */
  search(text: string): number[] {
    const wanted = text.toLowerCase();
    const hits: number[] = [];
    if (wanted === "") return hits;
    this.lines.forEach((line, index) => {
      if (stripLine(line.text).toLowerCase().includes(wanted)) hits.push(index);
    });
    return hits;
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

/** Returns what a terminal would show of a line: a carriage return begins it again. */
export function visible(text: string): string {
  const end = text.endsWith("\r") ? text.length - 1 : text.length;
  const start = text.lastIndexOf("\r", end - 1);
  return text.slice(start + 1, end);
}

/** Parses a range of lines such as "120-140" or "7"; null if it is none. */
export function parseRange(text: string): [number, number] | null {
  const match = /^(\d+)(?:-(\d+))?$/.exec(text);
  if (!match) return null;
  const first = Number(match[1]);
  const last = Number(match[2] ?? match[1]);
  return first <= last ? [first, last] : [last, first];
}
