import type { components, paths } from "./schema";
import { awaitRenewal, root, session } from "./session";

export type Schemas = components["schemas"];
/** The paths that GET reads. */
export type GetPath = { [P in keyof paths]: paths[P] extends { get: unknown } ? P : never }[keyof paths];
type Content<R> = R extends { responses: { 200: { content: { "application/json": infer C } } } } ? C : never;
/** What GET returns for a path of the API's description. */
export type Answer<P extends GetPath> = paths[P] extends { get: infer R } ? Content<R> : never;
type QueryOf<R> = R extends { parameters: { query?: infer Q } } ? NonNullable<Q> : never;
/** The parameters of a path; empty ones are not sent. */
export type GetQuery<P extends GetPath> = paths[P] extends { get: infer R }
  ? [QueryOf<R>] extends [never]
    ? Record<string, never>
    : { [K in keyof QueryOf<R>]?: QueryOf<R>[K] | "" | undefined }
  : never;
/** The named segments of a path; the project is that of the page. */
export type Names = Record<string, string>;

/** A request that the server refused, or did not answer (status 0). */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly requestId: string,
  ) {
    super(message);
  }
}

export type Method = "POST" | "PUT" | "PATCH" | "DELETE";

/** Reads a path of the API. */
export async function get<P extends GetPath>(
  path: P,
  names: Names = {},
  query: GetQuery<P> = {} as GetQuery<P>,
  signal?: AbortSignal,
): Promise<Answer<P>> {
  return (await sendJson("GET", url(path, names, query as Record<string, unknown>), undefined, signal)) as Answer<P>;
}

/** Changes something, and returns what the server answers; null for an empty answer. */
export function change(method: Method, path: keyof paths, names?: Names, body?: unknown, query?: Record<string, unknown>): Promise<unknown> {
  return sendJson(method, url(path, names, query), body);
}

/** Sends a request, and returns the data of the answer; null for an empty one. */
export async function sendJson(method: string, address: string, body?: unknown, signal?: AbortSignal): Promise<unknown> {
  const text = await (await send(method, address, body, signal)).text();
  return text ? JSON.parse(text) : null;
}

/** Returns the URL of a path below the console's, with the names in its braces. */
export function url(path: string, names: Names = {}, query: Record<string, unknown> = {}): string {
  const values: Names = { ...names, project: session.project.id };
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") parameters.append(name, String(one));
    }
  }
  const text = parameters.toString();
  return `${root}api${filled}${text ? `?${text}` : ""}`;
}

/** Sends a request with the session, once more after the user has signed in again. Throws ApiError. */
export async function send(
  method: string,
  address: string,
  body?: unknown,
  signal?: AbortSignal,
  headers: Record<string, string> = {},
): Promise<Response> {
  const json: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  const attempt = () =>
    fetch(address, {
      method,
      signal: signal ?? null,
      // Otherwise Chromium lets a stream wait for the end of another one with the same address.
      cache: "no-store",
      body: body === undefined ? null : JSON.stringify(body),
      headers: {
        Accept: "application/json",
        ...json,
        ...headers,
        "X-Stoker-CSRF": session.csrf,
        // for the paths that name no project
        "X-Stoker-Project": session.project.id,
      },
    });
  try {
    let response = await attempt();
    if (response.status === 401) {
      await awaitRenewal();
      response = await attempt();
    }
    if (!response.ok) throw await describe(response);
    return response;
  } catch (error) {
    if (error instanceof ApiError || signal?.aborted) throw error;
    throw new ApiError("The server does not answer.", 0, "");
  }
}

async function describe(response: Response): Promise<ApiError> {
  const id = response.headers.get("X-OpenStack-Request-Id") ?? "";
  let message = `The server answered ${response.status} ${response.statusText}`;
  try {
    const body = (await response.json()) as { error?: { message?: string }; explanation?: string };
    message = body.error?.message ?? body.explanation ?? message;
  } catch {
    // not Stoker's own answer, such as a proxy's
  }
  return new ApiError(message, response.status, id);
}
