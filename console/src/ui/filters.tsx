import type { ComponentChildren } from "preact";
import { SYMBOLS, toneOf, wordsOf, type Tone } from "../model/state";
import { Link, query, segments, setQuery } from "./router";

interface Pill {
  value: string;
  text: ComponentChildren;
  tone?: Tone;
}

interface PillsProps {
  name: string;
  label: string;
  of: readonly Pill[];
  /** Parameters of the URL that a choice removes. */
  clears?: readonly string[];
  /** Tabs, of which one is always chosen. */
  areTabs?: boolean;
}

/** Buttons of which one is chosen, in the parameter `name` of the URL. */
export function Pills({ name, label, of: pills, clears = [], areTabs = false }: PillsProps) {
  const chosen = query.value.get(name) ?? "";
  const choose = (value: string) => setQuery({ ...Object.fromEntries(clears.map((other) => [other, ""])), [name]: value });
  return (
    <div class={areTabs ? "tabs" : "pills"} role="group" aria-label={label}>
      {pills.map(({ value, text, tone }) => (
        <button
          key={value}
          class={areTabs ? "" : `pill ${tone ?? ""}`}
          aria-pressed={chosen === value}
          onClick={() => choose(chosen === value && !areTabs ? "" : value)}
        >
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

/** Links to the first page of a list and to the next one, which begins after the marker `next`; empty: there is none. */
export function Pages({ next, labels = ["← Newest", "Older →"], range }: { next: string; labels?: readonly [string, string]; range?: Range }) {
  const isFirst = !query.value.get("marker");
  if (isFirst && next === "") return null;
  const link = (label: string, marker: string, first: string) => (
    <Link to={segments.value} with={{ ...Object.fromEntries(query.value), marker, first }}>
      {label}
    </Link>
  );
  return (
    <nav class="pages" aria-label="Pages of the list">
      {range && (
        <span class="quiet">
          {range.first.toLocaleString("en")}–{range.last.toLocaleString("en")} of {range.total.toLocaleString("en")}
        </span>
      )}
      {!isFirst && link(labels[0], "", "")}
      {next && link(labels[1], next, range ? `${range.last + 1}` : "")}
    </nav>
  );
}

/** Which rows of a list a page has. */
interface Range {
  first: number;
  last: number;
  total: number;
}
