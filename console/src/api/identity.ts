import { send } from "./client";
import { root } from "./session";

/** Objects of the identity API, which is Keystone's and has no description of Stoker's own. */
export interface User {
  id: string;
  name: string;
  enabled: boolean;
  email?: string;
  description?: string;
}
export interface Project {
  id: string;
  name: string;
}
export interface Assignment {
  role: { id: string; name?: string };
  user: { id: string };
  scope: { project?: { id: string; name?: string }; system?: object };
}
export interface Credential {
  id: string;
  name: string;
  project_id: string;
  roles: { name: string }[];
  expires_at: string | null;
  secret?: string;
}

/** Reads a path of the identity API. */
export async function getIdentity<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await (await send("GET", urlOf(path), undefined, signal)).json()) as T;
}

/** Changes something, and returns what the identity API answers; null for an empty answer. */
export async function changeIdentity(method: "POST" | "PUT" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<unknown> {
  const text = await (await send(method, urlOf(path), body)).text();
  return text ? JSON.parse(text) : null;
}

function urlOf(path: string): string {
  return `${root}api/identity/v3${path}`;
}
