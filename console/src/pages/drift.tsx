import { useState } from "preact/hooks";
import { change, type Schemas } from "../api/client";
import { countBy, groupBy } from "../model/groups";
import { parseTime } from "../model/time";
import { type Action, Actions } from "../ui/actions";
import { useGet } from "../ui/data";
import { StateFilter, TextFilter } from "../ui/filters";
import { Card, Data, Empty, Head, State, Time } from "../ui/parts";
import { Link, readQuery } from "../ui/router";
import { Items } from "../views/differences";
import { nameOf } from "./runs";

type Check = Schemas["ShownCheck"];

/** Deployments that the page shows, and servers of one request. */
const MOST = 200;

/** What has drifted from its deployment on which server, since when, and how it differs. */
export function DriftPage() {
  const { state, ...filters } = readQuery("state", "selector", "stack", "server");
  const loaded = useGet("/v1/{project}/checks", {}, filters);
  const all = loaded.data?.checks ?? [];
  const rows = state ? all.filter((check) => check.state === state) : all;
  return (
    <>
      <Head title="Drift">{rows.length > 0 && <Actions of={[checkAgain(rows)]} onDone={loaded.reload} />}</Head>
      <div class="filters">
        <TextFilter name="server" label="Server" hint="web1" />
        <TextFilter name="stack" label="Stack" hint="shop" />
        <TextFilter name="selector" label="Selector" hint="tier=web and os.family=debian" />
      </div>
      <Data of={loaded}>
        {() => (
          <>
            <StateFilter name="state" counts={countBy(all, (check) => check.state)} />
            {rows.length === 0 ? <Nothing isEmpty={all.length === 0} /> : <Servers checks={rows} reload={loaded.reload} />}
          </>
        )}
      </Data>
    </>
  );
}

function Nothing({ isEmpty }: { isEmpty: boolean }) {
  return (
    <Empty>
      {isEmpty ? (
        <>
          No deployment has been checked. The option <code>check_interval</code> of a config lets agents check by
          themselves, and <code>stoker check</code> checks now.
        </>
      ) : (
        "No deployment is in this state."
      )}
    </Empty>
  );
}

/** The action that lets the agents of these rows answer again. */
function checkAgain(checks: readonly Check[]): Action {
  const servers = [...new Set(checks.map((check) => check.server_id))].slice(0, MOST);
  const count = servers.length === 1 ? (checks[0]!.server_name ?? "one server") : `${servers.length} servers`;
  return {
    label: "Check again",
    question: `The agents of ${count} compare all deployments of their servers. Nothing changes.`,
    run: () => change("POST", "/v1/{project}/checks", {}, { servers }),
  };
}

function repair(check: Check): Action {
  return {
    label: "Repair",
    question: `${titleOf(check)} runs again on ${check.server_name}, with the same config and the same inputs.`,
    run: () => change("POST", "/v1/{project}/checks/{deployment_id}/repair", { deployment_id: check.deployment_id }),
  };
}

function titleOf({ deployment_id: id, name: config_name, ...check }: Check): string {
  return nameOf({ id, config_name, ...check });
}

/** A card for each server, the longest drifted ones first. */
function Servers({ checks, reload }: { checks: readonly Check[]; reload: () => void }) {
  const shown = [...checks]
    .sort((one, other) => Number(other.state === "DRIFTED") - Number(one.state === "DRIFTED") || one.since.localeCompare(other.since))
    .slice(0, MOST);
  const groups = groupBy(shown, (check) => check.server_id);
  return (
    <>
      {[...groups].map(([id, rows]) => (
        <Card key={id} title={rows[0]!.server_name ?? id} aside={<State of={rows[0]!.server_status} />}>
          <div class="folds">
            {rows.map((check) => (
              <Row key={check.deployment_id} check={check} reload={reload} />
            ))}
          </div>
        </Card>
      ))}
      {checks.length > shown.length && (
        <p class="quiet">{checks.length - shown.length} more deployments match. Choose a server, a stack or a selector.</p>
      )}
    </>
  );
}

function Row({ check, reload }: { check: Check; reload: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span>{titleOf(check)}</span>
        <State of={check.state} />
        {check.pending && <State of="waits for the agent" tone="wait" />}
        <span class="fold-text quiet">{check.summary || check.reason}</span>
        <span class="row-time">
          <Time at={check.since} />
        </span>
      </summary>
      {isOpen && <Details check={check} reload={reload} />}
    </details>
  );
}

function Details({ check, reload }: { check: Check; reload: () => void }) {
  const names = { deployment_id: check.deployment_id };
  const loaded = useGet("/v1/{project}/checks/{deployment_id}", names, {}, 0, parseTime(check.checked_at ?? check.since));
  const actions = check.state === "DRIFTED" ? [repair(check), checkAgain([check])] : [checkAgain([check])];
  return (
    <div class="fold-body">
      <Data of={loaded}>
        {({ check: detail }) => (
          <>
            <p class="quiet">
              {detail.reason && `${detail.reason}. `}
              Checked <Time at={detail.checked_at} />
              {detail.check_interval ? `, every ${detail.check_interval} s` : ", on request only"}
              {detail.enforce ? ", and repaired by itself" : ""}.{" "}
              <Link to={["runs", detail.deployment_id]}>The run</Link>
            </p>
            <Items of={detail.changes ?? []} />
          </>
        )}
      </Data>
      <div class="actions">
        <Actions of={actions} onDone={reload} />
      </div>
    </div>
  );
}
