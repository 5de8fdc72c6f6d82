import { type Method, sendJson } from "./client";
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
  return (await sendJson("GET", urlOf(path), undefined, signal)) as T;
}

/** Changes something, and returns what the identity API answers; null for an empty answer. */
export function changeIdentity(method: Method, path: string, body?: unknown): Promise<unknown> {
  return sendJson(method, urlOf(path), body);
}

function urlOf(path: string): string {
  return `${root}api/identity/v3${path}`;
}
