import { useEffect, useState } from "preact/hooks";
import { ApiError, change, get, type Schemas } from "../api/client";
import type { Group } from "../model/parameters";
import type { ServerResult } from "../model/plan";
import { useTask } from "../ui/form";
import { Card, Loading, Problem } from "../ui/parts";
import { navigate } from "../ui/router";
import { PlanView, ServerResults } from "../views/plan";
import { apply, askServers, type Draft, plan as makePlan, type Plan } from "./stack_draft";

/** Milliseconds between two looks at a preview. */
const PAUSE = 700;
const TRIGGER = "/v1/{project}/software_triggers/{trigger_id}";

/** The plan of a draft, and the only button that applies it. */
export function Review({ draft, groups, onBack }: { draft: Draft; groups: readonly Group[]; onBack: () => void }) {
  const [plan, setPlan] = useState<Plan | null>(null);
  const { error, isRunning, run } = useTask();
  const load = () => {
    setPlan(null);
    void run(async () => setPlan(await makePlan(draft, groups)));
  };
  useEffect(load, []);
  const create = async () => navigate(await apply(draft, groups, plan!.digest));
  const isStale = error instanceof ApiError && error.status === 409 && draft.present !== null;
  return (
    <section class="stack-edit" aria-label="Review">
      {error && <Problem error={error} {...(plan === null || isStale ? { retry: load } : {})} />}
      {plan === null ? (
        !error && <Loading />
      ) : (
        <div class={isStale ? "stale stack-edit" : "stack-edit"}>
          <PlanView changes={plan.changes} runs={plan.runs} />
          {plan.runs.some((run) => run.server_id !== null) && <OnServers draft={draft} groups={groups} />}
        </div>
      )}
      <div class="buttons">
        {plan !== null && !isStale && (
          <button class={(plan.changes.replaced ?? []).length > 0 ? "danger" : "primary"} disabled={isRunning} onClick={() => void run(create)}>
            {plan.digest === null ? `Create ${draft.name}` : `Apply plan ${plan.digest}`}
          </button>
        )}
        <button onClick={onBack}>Back to the parameters</button>
      </div>
    </section>
  );
}

type Previews = { name: string; reason: string | null; results: ServerResult[] }[];

/** What would change on the servers, which they are asked for on demand: their agents run the hooks without changes. */
function OnServers({ draft, groups }: { draft: Draft; groups: readonly Group[] }) {
  const [controller, setController] = useState<AbortController | null>(null);
  const [previews, setPreviews] = useState<Previews | null>(null);
  const { error, run } = useTask();
  useEffect(() => () => controller?.abort(), [controller]);
  const ask = async () => {
    const next = new AbortController();
    setController(next);
    await run(async () => {
      const started = await askServers(draft, groups);
      const all = await Promise.all(started.map((preview) => take(preview, next.signal)));
      if (!next.signal.aborted) setPreviews(all);
    });
    setController(null);
  };
  return (
    <Card title="Differences on the servers">
      {error && <Problem error={error} />}
      {previews ? (
        <ServerResults of={previews} />
      ) : (
        <div class="buttons">
          <button disabled={controller !== null} onClick={() => void ask()}>
            {controller ? "The servers are checking …" : "Ask the servers what would change"}
          </button>
        </div>
      )}
    </Card>
  );
}

/** Waits for the preview of one deployment, and deletes its trigger; if the page is left, it cancels it before. */
async function take(preview: Schemas["ServerPreview"], signal: AbortSignal): Promise<Previews[number]> {
  const { resource_name: name, trigger_id, reason } = preview;
  if (trigger_id === null) return { name, reason, results: [] };
  let isCancelled = false;
  for (;;) {
    const { software_trigger: trigger } = await get(TRIGGER, { trigger_id });
    if (trigger.status !== "IN_PROGRESS") {
      await change("DELETE", TRIGGER, { trigger_id });
      return { name, reason: null, results: (trigger.targets ?? []).map(readTarget) };
    }
    if (signal.aborted && !isCancelled) {
      isCancelled = true;
      await change("POST", `${TRIGGER}/cancel`, { trigger_id }, { force: true });
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function readTarget(target: Schemas["TriggerTarget"]): ServerResult {
  const changes = (target.run?.changes ?? []).map(({ item = "", outcome = "changed", diff }) => ({ item, outcome, ...(diff ? { diff } : {}) }));
  const count = changes.length;
  const words = {
    true: count > 0 ? `would change ${count} ${count === 1 ? "item" : "items"}` : "would change",
    false: "nothing would change",
    null: `unknown: ${target.run?.status_reason ?? target.status_reason}`,
  };
  const isDone = target.status === "COMPLETE";
  return { server: target.server_name, summary: isDone ? words[`${target.changed}`] : `unknown: ${target.status_reason}`, changes };
}
