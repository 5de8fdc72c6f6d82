import type { DiffLine } from "../model/diff";

const MARKS = { equal: " ", added: "+", removed: "-", skipped: "…" };

/** Lines of a comparison, each with a mark; without marks, where nothing is compared. */
export function Differences({ lines, label, isMarked = true }: { lines: readonly DiffLine[]; label: string; isMarked?: boolean }) {
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={label}>
      {lines.map(({ kind, text }, index) => (
        <span key={index} class={kind}>
          {isMarked && `${MARKS[kind]} `}
          {text}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}
