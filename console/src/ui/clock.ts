import { signal } from "@preact/signals";

/** The time in milliseconds, once a second while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
