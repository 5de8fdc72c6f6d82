import { ApiError, change, get, type Schemas } from "../api/client";
import { fieldsOf, type Group, readForm, textOf } from "../model/parameters";
import type { PlannedRun } from "../model/plan";
import { flatten } from "../model/plan";
import { assignFiles, missingFiles, type Problem, problemsOf, REDACTED, redactedLineOf } from "../model/template";
import { toYaml } from "../model/yaml";
import type { Changes } from "../views/plan";
import { findExample } from "./examples";

/** What a user has written about a stack so far. Only the page keeps it: it may contain secrets. */
export interface Draft {
  name: string;
  template: string;
  environment: string;
  /** Files by path, as the user chose them. */
  chosen: Readonly<Record<string, string>>;
  /** Texts of the parameters' fields. */
  texts: Readonly<Record<string, string>>;
  timeout: string;
  tags: string;
  isRolledBack: boolean;
  /** The stack to update; null for a new one. */
  present: Present | null;
}

/** What a stack has that is updated. */
interface Present {
  path: { stack_name: string; stack_id: string };
  template: string;
  files: Record<string, string>;
  /** Without values of parameters. */
  environment: Record<string, unknown>;
  /** The values that were given, as texts; empty for hidden ones. */
  texts: Record<string, string>;
}

/** A template that the server has accepted. */
export interface Checked {
  description: string;
  groups: Group[];
}

/** A plan, with the digest that names it; a new stack has none. */
export interface Plan {
  changes: Changes;
  runs: readonly PlannedRun[];
  digest: string | null;
}

const EMPTY = { name: "", template: "", environment: "", chosen: {}, texts: {}, timeout: "", tags: "", isRolledBack: false, present: null };
const STACK = "/v1/{project}/stacks/{stack_name}/{stack_id}";

/** Begins a new stack: with nothing, with `example:NAME`, or with the entry `catalog:NAME/VERSION`. */
export async function beginNew(source: string, signal: AbortSignal): Promise<Draft> {
  const [kind, name = ""] = source.split(/:(.*)/);
  if (kind === "example") {
    const example = findExample(name);
    if (example === null) throw new ApiError(`There is no example ${name}.`, 404, "");
    return { ...EMPTY, name, template: example.template, chosen: example.files };
  }
  if (kind !== "catalog") return EMPTY;
  const [entry_name = "", number = ""] = name.split("/");
  const { entry } = await get("/v1/{project}/catalog/{entry_name}/{number}", { entry_name, number }, {}, signal);
  return { ...EMPTY, name: entry.name, template: entry.text };
}

/** Begins the update of a stack, with what it has. */
export async function beginUpdate(path: Present["path"], signal: AbortSignal): Promise<Draft> {
  const [{ stack }, data, environment, files] = await Promise.all([
    get(STACK, path, { resolve_outputs: false }, signal),
    get(`${STACK}/template`, path, {}, signal),
    get(`${STACK}/environment`, path, {}, signal),
    get(`${STACK}/files`, path, {}, signal),
  ]);
  const { parameters, encrypted_param_names: _, event_sinks: __, ...rest } = environment;
  const texts = Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [name, (value as unknown) === REDACTED ? "" : textOf(value)]),
  );
  const template = toYaml(data);
  return {
    ...EMPTY,
    name: path.stack_name,
    template,
    texts,
    timeout: stack.timeout_mins ? `${stack.timeout_mins}` : "",
    tags: (stack.tags ?? []).join(", "),
    isRolledBack: !stack.disable_rollback,
    present: { path, template, files, environment: rest, texts },
  };
}

/** Returns the names of files that the draft needs and lacks. */
export function listMissing(draft: Draft): string[] {
  const { assigned, present } = filesOf(draft);
  return missingFiles(draft.template, draft.environment, { ...present, ...assigned });
}

function filesOf(draft: Draft): { assigned: Record<string, string>; present: Record<string, string> } {
  const present = draft.present?.files ?? {};
  let assigned: Record<string, string> = {};
  // A chosen file may need others.
  for (let count = -1; count < Object.keys(assigned).length; ) {
    count = Object.keys(assigned).length;
    const missing = missingFiles(draft.template, draft.environment, assigned);
    assigned = { ...assigned, ...assignFiles(missing, draft.chosen) };
  }
  return { assigned, present };
}

/** Asks the server what the template's parameters are. Returns the problems if it refuses the template. */
export async function check(draft: Draft): Promise<Checked | Problem[]> {
  const { assigned, present } = filesOf(draft);
  const line = draft.template === draft.present?.template ? null : redactedLineOf(draft.template);
  if (line !== null) return [{ line, text: `${REDACTED} stands for a hidden default: write the value itself, or remove the default.` }];
  // The stack's own environment counts before that of the draft, as in the update itself.
  const environments: Record<string, string> = draft.present ? { "the stack's environment": toYaml(draft.present.environment) } : {};
  if (draft.environment.trim()) environments["the environment"] = draft.environment;
  const body = {
    template: draft.template,
    files: { ...present, ...assigned, ...environments },
    environment_files: Object.keys(environments),
  };
  try {
    const answer = (await change("POST", "/v1/{project}/validate", {}, body)) as Schemas["ValidatedTemplate"];
    return { description: answer.Description, groups: fieldsOf(answer.Parameters, answer.ParameterGroups) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return problemsOf(error.message);
    throw error;
  }
}

/** Returns the request that creates or updates the stack; an update omits what stays. */
function bodyOf(draft: Draft, groups: readonly Group[]): Record<string, unknown> {
  const { present } = draft;
  const { values, cleared } = readForm(groups, draft.texts, present?.texts);
  const isKept = present !== null && draft.template === present.template;
  return {
    ...(present ? { clear_parameters: cleared } : { stack_name: draft.name }),
    ...(isKept ? {} : { template: draft.template }),
    ...(draft.environment.trim() ? { environment: draft.environment } : {}),
    files: filesOf(draft).assigned,
    parameters: values,
    disable_rollback: !draft.isRolledBack,
    tags: draft.tags,
    ...(draft.timeout ? { timeout_mins: Number(draft.timeout) } : {}),
  };
}

/** Returns what the stack's creation or update would do. Throws ApiError. */
export async function plan(draft: Draft, groups: readonly Group[]): Promise<Plan> {
  const body = bodyOf(draft, groups);
  if (draft.present) {
    const answer = (await change("PATCH", `${STACK}/preview`, draft.present.path, body, { show_nested: true })) as Schemas["ChangesAnswer"];
    return { changes: answer.resource_changes, runs: answer.planned_runs, digest: answer.plan };
  }
  const answer = (await change("POST", "/v1/{project}/stacks/preview", {}, body)) as {
    stack: Schemas["PreviewedStack"];
    planned_runs: PlannedRun[];
  };
  return { changes: { added: flatten(answer.stack.resources) }, runs: answer.planned_runs, digest: null };
}

/** Starts previews on the servers that the plan concerns. Throws ApiError. */
export async function askServers(draft: Draft, groups: readonly Group[]): Promise<readonly Schemas["ServerPreview"][]> {
  const body = bodyOf(draft, groups);
  const answer = draft.present
    ? await change("PATCH", `${STACK}/preview`, draft.present.path, body, { on_servers: true })
    : await change("POST", "/v1/{project}/stacks/server_previews", {}, body);
  return (answer as Schemas["ServerPreviewsAnswer"]).server_previews;
}

/** Creates or updates the stack: exactly as planned, or not at all. Returns the path of its page. Throws ApiError. */
export async function apply(draft: Draft, groups: readonly Group[], digest: string | null): Promise<string[]> {
  const body = bodyOf(draft, groups);
  if (draft.present) {
    await change("PATCH", STACK, draft.present.path, { ...body, plan: digest });
    return ["stacks", draft.present.path.stack_name, draft.present.path.stack_id];
  }
  const { stack } = (await change("POST", "/v1/{project}/stacks", {}, body)) as { stack: { id: string } };
  return ["stacks", draft.name, stack.id];
}
