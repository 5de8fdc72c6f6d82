/** A line of a comparison: in both texts, only in the second one, only in the first one, or a number of equal lines. */
export interface DiffLine {
  kind: "equal" | "added" | "removed" | "skipped";
  text: string;
}

/** Products of the numbers of lines up to which lines are compared one by one. */
const MOST = 1_000_000;

/** Returns the lines of `second`, with those that `first` lacks marked as added, and those only in `first` as removed. */
export function compareLines(first: readonly string[], second: readonly string[]): DiffLine[] {
  let start = 0;
  while (start < first.length && start < second.length && first[start] === second[start]) start++;
  let end = 0;
  while (end < first.length - start && end < second.length - start && first.at(-1 - end) === second.at(-1 - end)) end++;
  return [
    ...first.slice(0, start).map((text): DiffLine => ({ kind: "equal", text })),
    ...compareMiddle(first.slice(start, first.length - end), second.slice(start, second.length - end)),
    ...second.slice(second.length - end).map((text): DiffLine => ({ kind: "equal", text })),
  ];
}

/** Replaces runs of more than `most` equal lines by their number, with `around` lines before and after differences. */
export function skipEqual(lines: readonly DiffLine[], most = 6, around = 2): DiffLine[] {
  const result: DiffLine[] = [];
  for (let from = 0; from < lines.length; ) {
    if (lines[from]!.kind !== "equal") {
      result.push(lines[from++]!);
      continue;
    }
    let to = from;
    while (to < lines.length && lines[to]!.kind === "equal") to++;
    const before = from === 0 ? 0 : around;
    const after = to === lines.length ? 0 : around;
    if (to - from <= most) result.push(...lines.slice(from, to));
    else {
      const count = to - from - before - after;
      result.push(...lines.slice(from, from + before), { kind: "skipped", text: `${count} equal lines` }, ...lines.slice(to - after, to));
    }
    from = to;
  }
  return result;
}

/** Parses a difference as programs print it, whose lines begin with + or - where they differ; names of files are left out. */
export function parseDifference(text: string): DiffLine[] {
  const lines = text.replace(/^--- .*\n\+\+\+ .*\n/, "").replace(/\n$/, "").split("\n");
  return lines.map((line): DiffLine => {
    if (line.startsWith("+")) return { kind: "added", text: line.slice(1) };
    if (line.startsWith("-")) return { kind: "removed", text: line.slice(1) };
    return line.startsWith("@@ ") ? { kind: "skipped", text: line } : { kind: "equal", text: line.replace(/^ /, "") };
  });
}

/** Compares by the longest common subsequence; texts that are too long for it count as completely different. */
function compareMiddle(first: readonly string[], second: readonly string[]): DiffLine[] {
  const removed = first.map((text): DiffLine => ({ kind: "removed", text }));
  const added = second.map((text): DiffLine => ({ kind: "added", text }));
  if (first.length * second.length === 0 || first.length * second.length > MOST) return [...removed, ...added];
  const width = second.length + 1;
  const lengths = new Uint32Array((first.length + 1) * width);
  for (let one = first.length - 1; one >= 0; one--) {
    for (let other = second.length - 1; other >= 0; other--) {
      const at = one * width + other;
      lengths[at] = first[one] === second[other] ? lengths[at + width + 1]! + 1 : Math.max(lengths[at + width]!, lengths[at + 1]!);
    }
  }
  const result: DiffLine[] = [];
  let [one, other] = [0, 0];
  while (one < first.length && other < second.length) {
    const at = one * width + other;
    if (first[one] === second[other]) {
      result.push({ kind: "equal", text: first[one]! });
      one++;
      other++;
    } else if (lengths[at + width]! >= lengths[at + 1]!) result.push(removed[one++]!);
    else result.push(added[other++]!);
  }
  return [...result, ...removed.slice(one), ...added.slice(other)];
}
