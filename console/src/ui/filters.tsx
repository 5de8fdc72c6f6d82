import { query, setQuery } from "./router";
import { SYMBOLS, toneOf, wordsOf } from "../model/state";

/** Buttons with the number of rows of each state, which filter the list; the choice is in the URL. */
export function StateFilter({ name = "status", counts }: { name?: string; counts: ReadonlyMap<string, number> }) {
  const chosen = query.value.get(name) ?? "";
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const states = [...new Set([...counts.keys(), ...(chosen ? [chosen] : [])])].sort();
  return (
    <div class="pills" role="group" aria-label="Filter by state">
      <button class="pill" aria-pressed={chosen === ""} onClick={() => setQuery({ [name]: "" })}>
        all <b>{total}</b>
      </button>
      {states.map((state) => (
        <button
          key={state}
          class={`pill ${toneOf(state)}`}
          aria-pressed={chosen === state}
          onClick={() => setQuery({ [name]: chosen === state ? "" : state })}
        >
          <span aria-hidden="true">{SYMBOLS[toneOf(state)]}</span> {wordsOf(state)} <b>{counts.get(state) ?? 0}</b>
        </button>
      ))}
    </div>
  );
}

/** A field whose text is a parameter of the URL. The key / moves to the first one of a page. */
export function TextFilter({ name, label, hint }: { name: string; label: string; hint: string }) {
  return (
    <label class="filter">
      <span>{label}</span>
      <input
        type="search"
        class="text-filter"
        placeholder={hint}
        value={query.value.get(name) ?? ""}
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim() })}
      />
    </label>
  );
}

/** Counts rows by state. */
export function countBy<T>(rows: readonly T[], stateOf: (row: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const row of rows) counts.set(stateOf(row), (counts.get(stateOf(row)) ?? 0) + 1);
  return counts;
}
