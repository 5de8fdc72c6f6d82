import type { DiffLine } from "../model/diff";

const MARKS = { equal: " ", added: "+", removed: "−", skipped: "…" };

/** Lines of a comparison, each with a mark; without marks, where nothing is compared. */
export function Differences({ lines, label, isMarked = true }: { lines: readonly DiffLine[]; label: string; isMarked?: boolean }) {
  return (
    <pre class="differences" tabIndex={0} role="group" aria-label={label}>
      {lines.map((line, index) => (
        <span key={index} class={`diff-line ${line.kind}`}>
          {isMarked && <span class="mark">{MARKS[line.kind]} </span>}
          {line.text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
