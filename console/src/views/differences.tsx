import { type DiffLine, parseDifference } from "../model/diff";

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

interface Item {
  item?: string;
  outcome?: string;
  diff?: string | null;
}

/** Items that a run changes or would change, each with its difference; few items are unfolded. */
export function Items({ of: items }: { of: readonly Item[] }) {
  return (
    <>
      {items.map(({ item, outcome, diff }, index) => (
        <details key={index} open={items.length < 4}>
          <summary>
            {item} <span class="quiet">{outcome}</span>
          </summary>
          {diff ? <Differences lines={parseDifference(diff)} label={`Differences of ${item}`} /> : <p class="quiet">The hook shows no difference.</p>}
        </details>
      ))}
    </>
  );
}
