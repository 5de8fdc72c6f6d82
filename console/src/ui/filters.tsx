import type { ComponentChildren } from "preact";
import { SYMBOLS, toneOf, wordsOf, type Tone } from "../model/state";
import { Link, query, segments, setQuery } from "./router";

interface Pill {
  value: string;
  text: ComponentChildren;
  tone?: Tone;
}

/** Buttons of which one is chosen, in the parameter `name` of the URL. A choice removes the parameters `clears`. */
export function Pills(props: { name: string; label: string; of: readonly Pill[]; clears?: readonly string[] }) {
  const chosen = query.value.get(props.name) ?? "";
  const choose = (value: string) => setQuery({ ...Object.fromEntries((props.clears ?? []).map((name) => [name, ""])), [props.name]: value });
  return (
    <div class="pills" role="group" aria-label={props.label}>
      {props.of.map(({ value, text, tone }) => (
        <button key={value} class={`pill ${tone ?? ""}`} aria-pressed={chosen === value} onClick={() => choose(chosen === value ? "" : value)}>
          {text}
        </button>
      ))}
    </div>
  );
}

/**
 * Buttons with the number of rows of each state, which filter the list; the choice is in the URL.
 *
 * A number of null is not shown. Each choice leads to the first page of a list with pages.
 */
export function StateFilter({ name = "status", counts }: { name?: string; counts: ReadonlyMap<string, number | null> }) {
  const chosen = query.value.get(name) ?? "";
  const numbers = [...counts.values()].filter((count) => count !== null);
  const total = numbers.length === counts.size ? numbers.reduce((sum, count) => sum + count, 0) : null;
  const number = (count: number | null) => count !== null && <b>{count.toLocaleString("en")}</b>;
  const states = [...new Set([...counts.keys(), ...(chosen ? [chosen] : [])])].sort();
  const pills = states.map((state): Pill => {
    const tone = toneOf(state);
    const text = (
      <>
        <span aria-hidden="true">{SYMBOLS[tone]}</span> {wordsOf(state)} {number(counts.has(state) ? counts.get(state)! : 0)}
      </>
    );
    return { value: state, tone, text };
  });
  return <Pills name={name} label="Filter by state" clears={["marker"]} of={[{ value: "", text: <>all {number(total)}</> }, ...pills]} />;
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

/** A button in a row of a table, which chooses the row by the parameter `name` of the URL. */
export function RowChoice({ name, value, text }: { name: string; value: string; text: string }) {
  const isChosen = query.value.get(name) === value;
  return (
    <button class="link" aria-pressed={isChosen} onClick={() => setQuery({ [name]: isChosen ? "" : value })}>
      {text}
    </button>
  );
}

/** Links to the newest entries of a list with pages, and to older ones; `next` is the marker of the next page. */
export function Pages({ next }: { next: string }) {
  const isFirst = !query.value.get("marker");
  if (isFirst && next === "") return null;
  const filters = Object.fromEntries(query.value);
  return (
    <nav class="pages" aria-label="Pages of the list">
      {!isFirst && (
        <Link to={segments.value} with={{ ...filters, marker: "" }}>
          ← Newest
        </Link>
      )}
      {next && (
        <Link to={segments.value} with={{ ...filters, marker: next }}>
          Older →
        </Link>
      )}
    </nav>
  );
}
