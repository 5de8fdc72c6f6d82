import { useLayoutEffect } from "preact/hooks";
import { navigate } from "./router";

/** A page that a key after `g` opens. */
interface Section {
  segment: string;
  key: string;
}

interface Handlers {
  sections: readonly Section[];
  onHelp: () => void;
  onPalette: () => void;
}

/** The keys of each page, with what they do, except for those that open pages. */
export const KEYS: readonly (readonly [string, string])[] = [
  ["Ctrl-K", "to any stack, server, trigger, run, page or action"],
  ["/", "to the first filter"],
  ["j, k", "to the next and the previous row of a list, as ↓ and ↑"],
  ["Enter", "open the row"],
  ["q", "back"],
  ["n, p", "to the next and the previous failure"],
  ["n, N", "in an output with a search: to the next and the previous line"],
  ["?", "these keys"],
  ["Esc", "close"],
];

/** Listens to the keys of all pages. */
export function useKeys({ sections, onHelp, onPalette }: Handlers): void {
  // Before the page is shown: its keys work from then on.
  useLayoutEffect(() => {
    let isGoing = false;
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented) return;
      if ((event.ctrlKey || event.metaKey) && !event.altKey && event.key.toLowerCase() === "k") {
        event.preventDefault();
        if (!document.querySelector("dialog[open]")) onPalette();
        return;
      }
      const target = event.composedPath()[0] as HTMLElement; // also within a shadow root
      const isText = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) && (target as HTMLInputElement).type !== "checkbox";
      if (event.ctrlKey || event.metaKey || event.altKey || isText || target.isContentEditable) return;
      if (document.querySelector("dialog[open]")) return;
      const section = isGoing ? sections.find(({ key }) => key === event.key) : undefined;
      isGoing = event.key === "g";
      if (section) navigate(section.segment ? [section.segment] : []);
      else if (event.key === "?") onHelp();
      else if (event.key === "/") document.querySelector<HTMLElement>("main .text-filter")?.focus();
      else if (event.key === "q") history.back();
      else if (event.key === "n" || event.key === "p") focusFailure(event.key === "n" ? 1 : -1);
      else if (event.key === "j" || event.key === "k") focusRow(event.key === "j" ? 1 : -1);
      else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && target.closest("main .table-box, main .rows")) {
        focusRow(event.key === "ArrowDown" ? 1 : -1);
      } else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, []);
}

/** Moves to the link of the next row of a list. */
function focusRow(step: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("main tbody tr, main .rows li")];
  const links = rows.map((row) => row.querySelector<HTMLElement>("a")).filter((link) => link !== null);
  focusNext(links, links.findIndex((link) => link.closest("tr, li")?.contains(document.activeElement)), step);
}

/** Moves to the next link of a row that has failed. */
function focusFailure(step: number): void {
  const rows = [...document.querySelectorAll("tr, .rows li, .node.bad")].filter((row) => row.matches(".node") || row.querySelector(".state.bad"));
  const links = rows.map((row) => row.querySelector<HTMLElement | SVGElement>(row.matches(".node") ? "rect" : "a")).filter((link) => link !== null);
  focusNext(links, links.findIndex((link) => link === document.activeElement), step);
}

function focusNext(links: readonly (HTMLElement | SVGElement)[], index: number, step: number): void {
  if (links.length === 0) return;
  const next = index < 0 && step < 0 ? links.length - 1 : (index + step + links.length) % links.length;
  links[next]!.focus();
}
