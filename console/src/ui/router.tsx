import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { root, session } from "../api/session";

/** The path of the page's project, below which all pages are. */
const home = `${root}p/${encodeURIComponent(session.project.id)}/`;
const address = signal(location.pathname + location.search);

window.addEventListener("popstate", () => (address.value = location.pathname + location.search));

/** The segments of the page's path, decoded: ["servers", "web1"]; empty on the overview. */
export const segments = computed(() => {
  const path = address.value.split("?")[0]!;
  return path.slice(home.length).split("/").filter(Boolean).map(decodeURIComponent);
});

/** The query of the page's URL, which holds each filter and selection. */
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

/** Returns parameters of the page's URL by name; a missing one is empty. */
export function readQuery<Name extends string>(...names: readonly Name[]): Record<Name, string> {
  return Object.fromEntries(names.map((name) => [name, query.value.get(name) ?? ""])) as Record<Name, string>;
}

/** Returns the URL of a page, from its segments and its query. */
function hrefOf(path: readonly string[], parameters: Record<string, string> = {}): string {
  const text = new URLSearchParams(Object.entries(parameters).filter(([, value]) => value !== "")).toString();
  return home + path.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

/** Opens a page, from its segments and its query. */
export function navigate(path: readonly string[], parameters: Record<string, string> = {}): void {
  history.pushState(null, "", hrefOf(path, parameters));
  address.value = location.pathname + location.search;
  window.scrollTo(0, 0);
  document.querySelector<HTMLElement>("main")?.focus({ preventScroll: true });
}

/** Changes parameters of the page's URL, without a new entry in the history; empty values are removed. */
export function setQuery(changes: Record<string, string>): void {
  const parameters = new URLSearchParams(query.value);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") parameters.delete(name);
    else parameters.set(name, value);
  }
  const text = parameters.toString();
  history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
  address.value = location.pathname + location.search;
}

export interface LinkProps {
  to: readonly string[];
  with?: Record<string, string>;
  class?: string;
  "aria-current"?: "page" | undefined;
  children: ComponentChildren;
}

/** A link to a page of the console. */
export function Link({ to, with: parameters = {}, children, ...rest }: LinkProps) {
  const open = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to, parameters);
  };
  return (
    <a {...rest} href={hrefOf(to, parameters)} onClick={open}>
      {children}
    </a>
  );
}
