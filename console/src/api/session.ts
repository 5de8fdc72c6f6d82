import { signal } from "@preact/signals";

/** What the server writes into the page about the signed-in user and the page's project. */
interface Session {
  user: string;
  user_id: string;
  project: { id: string; name: string };
  has_projects: boolean;
  can_write: boolean;
  /** Whether the user administers the site. */
  is_admin: boolean;
  /** The user's domain in the site's Keystone; empty if the identity API is Stoker's own. */
  domain: string;
  expires_at: string;
  csrf: string;
  base: string;
  version: string;
}

function read(): Session {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="stoker-session"]');
  return JSON.parse(meta?.content ?? "null") as Session;
}

export const session: Session = read();
/** The console's own path, with the prefix of a proxy, such as /stoker/console/. */
export const root: string = new URL(session.base || "./", location.href).pathname;
/** Whether the session has ended, so that the user has to sign in again. */
export const hasEnded = signal(false);

let renewal: { promise: Promise<void>; resolve: () => void } | null = null;

/** Asks the user to sign in again, and resolves after that. All requests that fail in between wait for the same sign-in. */
export function awaitRenewal(): Promise<void> {
  if (renewal === null) {
    let resolve = () => {};
    const promise = new Promise<void>((done) => (resolve = done));
    renewal = { promise, resolve };
    hasEnded.value = true;
  }
  return renewal.promise;
}

/** Signs in again as the same user. Returns the reason if the server refuses. */
export async function renew(password: string, domain: string): Promise<string | null> {
  const body = new URLSearchParams({ name: session.user, password, domain });
  const response = await fetch(`${root}sign-in`, { method: "POST", body, headers: { "X-Stoker-CSRF": session.csrf } });
  if (!response.ok) {
    return response.status === 429 ? "Too many attempts: wait a moment." : "The password is wrong.";
  }
  session.csrf = ((await response.json()) as { csrf: string }).csrf;
  hasEnded.value = false;
  renewal?.resolve();
  renewal = null;
  return null;
}
