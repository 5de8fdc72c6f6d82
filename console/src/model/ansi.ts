/** A run of text with one style. `style` is a list of CSS classes; empty: the default. */
export interface Span {
  text: string;
  style: string;
}

/** The style that escape sequences have set. */
export interface Style {
  foreground: string;
  background: string;
  isBold: boolean;
  isDim: boolean;
  isItalic: boolean;
  isUnderlined: boolean;
}

const COLORS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
// Colors and attributes (CSI … m), other control sequences, titles and links (OSC), and single escapes.
// eslint-disable-next-line no-control-regex
const SEQUENCE = /\x1b\[([\d;:]*)m|\x1b\[[\d;:?<=>]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\-_]?/g;

export function plainStyle(): Style {
  return { foreground: "", background: "", isBold: false, isDim: false, isItalic: false, isUnderlined: false };
}

/**
 * Splits a line into runs of one style, beginning with `style`, which is changed to that of the line's end.
 *
 * Sequences other than colors and attributes are dropped. Other control characters are shown as symbols.
 */
export function parseLine(line: string, style: Style): Span[] {
  const spans: Span[] = [];
  let end = 0;
  for (const match of line.matchAll(SEQUENCE)) {
    add(spans, line.slice(end, match.index), style);
    end = match.index + match[0].length;
    if (match[1] !== undefined) apply(style, match[1]);
  }
  add(spans, line.slice(end), style);
  return spans;
}

/** Returns the text of a line without escape sequences. */
export function stripLine(line: string): string {
  return line.includes("\x1b") ? line.replace(SEQUENCE, "") : line;
}

function add(spans: Span[], text: string, style: Style): void {
  if (text === "") return;
  // eslint-disable-next-line no-control-regex
  const visible = text.replace(/[\x00-\x08\x0b-\x1f]/g, (char) => String.fromCharCode(0x2400 + char.charCodeAt(0)));
  const last = spans[spans.length - 1];
  const classes = classesOf(style);
  if (last?.style === classes) last.text += visible;
  else spans.push({ text: visible, style: classes });
}

function classesOf(style: Style): string {
  const classes = [
    style.foreground && `fg-${style.foreground}`,
    style.background && `bg-${style.background}`,
    style.isBold && "bold",
    style.isDim && "dim",
    style.isItalic && "italic",
    style.isUnderlined && "underlined",
  ];
  return classes.filter(Boolean).join(" ");
}

function apply(style: Style, parameters: string): void {
  const codes = parameters === "" ? [0] : parameters.split(/[;:]/).map(Number);
  for (let index = 0; index < codes.length; index++) {
    const code = codes[index]!;
    if (code === 38 || code === 48) {
      index = extended(style, codes, index);
    } else {
      applyOne(style, code);
    }
  }
}

/** Applies a color of 256, or of red, green and blue, as the nearest of the eight; returns the index of its last code. */
function extended(style: Style, codes: number[], index: number): number {
  const place = codes[index] === 38 ? "foreground" : "background";
  if (codes[index + 1] === 5) {
    style[place] = nearest(codes[index + 2] ?? 7);
    return index + 2;
  }
  if (codes[index + 1] === 2) {
    style[place] = ofLight(codes[index + 2] ?? 0, codes[index + 3] ?? 0, codes[index + 4] ?? 0);
    return index + 4;
  }
  return index;
}

function nearest(color: number): string {
  if (color < 16) return COLORS[color % 8]!;
  if (color >= 232) return color < 244 ? "black" : "white";
  const rest = color - 16;
  return ofLight(Math.floor(rest / 36) * 51, (Math.floor(rest / 6) % 6) * 51, (rest % 6) * 51);
}

function ofLight(red: number, green: number, blue: number): string {
  return COLORS[(red > 110 ? 1 : 0) + (green > 110 ? 2 : 0) + (blue > 110 ? 4 : 0)]!;
}

function applyOne(style: Style, code: number): void {
  if (code === 0) Object.assign(style, plainStyle());
  else if (code === 1) style.isBold = true;
  else if (code === 2) style.isDim = true;
  else if (code === 3) style.isItalic = true;
  else if (code === 4) style.isUnderlined = true;
  else if (code === 22) style.isBold = style.isDim = false;
  else if (code === 23) style.isItalic = false;
  else if (code === 24) style.isUnderlined = false;
  else if (code === 39) style.foreground = "";
  else if (code === 49) style.background = "";
  else applyColor(style, code);
}

function applyColor(style: Style, code: number): void {
  if (code >= 30 && code <= 37) style.foreground = COLORS[code - 30]!;
  else if (code >= 90 && code <= 97) style.foreground = COLORS[code - 90]!;
  else if (code >= 40 && code <= 47) style.background = COLORS[code - 40]!;
  else if (code >= 100 && code <= 107) style.background = COLORS[code - 100]!;
}
