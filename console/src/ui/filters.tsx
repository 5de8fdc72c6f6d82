import { query, setQuery } from "./router";
import { SYMBOLS, toneOf, wordsOf } from "../model/state";

/**
 * Buttons with the number of rows of each state, which filter the list; the choice is in the URL.
 *
 * A number of null is not shown. Each choice leads to the first page of a list with pages.
 */
export function StateFilter({ name = "status", counts }: { name?: string; counts: ReadonlyMap<string, number | null> }) {
  const chosen = query.value.get(name) ?? "";
  const numbers = [...counts.values()].filter((count) => count !== null);
  const total = numbers.reduce((sum, count) => sum + count, 0);
  const number = (count: number | null) => count !== null && <b>{count.toLocaleString("en")}</b>;
  const states = [...new Set([...counts.keys(), ...(chosen ? [chosen] : [])])].sort();
  return (
    <div class="pills" role="group" aria-label="Filter by state">
      <button class="pill" aria-pressed={chosen === ""} onClick={() => setQuery({ [name]: "", marker: "" })}>
        all {number(numbers.length === counts.size ? total : null)}
      </button>
      {states.map((state) => (
        <button
          key={state}
          class={`pill ${toneOf(state)}`}
          aria-pressed={chosen === state}
          onClick={() => setQuery({ [name]: chosen === state ? "" : state, marker: "" })}
        >
          <span aria-hidden="true">{SYMBOLS[toneOf(state)]}</span> {wordsOf(state)} {number(counts.has(state) ? counts.get(state)! : 0)}
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
        onChange={(event) => setQuery({ [name]: event.currentTarget.value.trim(), marker: "" })}
      />
    </label>
  );
}
