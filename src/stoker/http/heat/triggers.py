"""/v1/{project}/software_triggers: actions run on servers on demand (Stoker's own)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.deployments import triggers as life
from stoker.deployments.derive import starred
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import runs as histories
from stoker.http.heat import shapes
from stoker.model.deployment import Run
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.trigger import Target, Trigger, TriggerStatus
from stoker.stacks import asking, triggering
from stoker.stacks.targeting import find_stack
from stoker.store import runs, targets, triggers
from stoker.store.tx import Tx


def create(call: Call) -> Reply:
    body = reading.body(call)
    asked = asking.read(body.get("software_trigger", body))
    made = call.services.store.write(
        lambda tx: triggering.begin(tx, call.services.engine, call.project, asked, asked_by=call.user.user_name)
    )
    return Reply(201, {"software_trigger": shown(made)})


def index(call: Call) -> Reply:
    limit = reading.whole(call.query.get("limit"), "limit", 1)
    status = call.query.get("status")
    if status not in (None, *TriggerStatus):
        raise Invalid(f"status must be one of {', '.join(TriggerStatus)}, not {status!r:.100}")
    stack = call.query.get("stack")
    with call.services.store.read() as tx:
        try:
            stack_id = None if stack is None else find_stack(tx, call.project, stack).id
        except EntityNotFound:
            stack_id = stack  # one that is gone has its triggers yet
        found = triggers.page(
            tx, call.project, limit=limit, marker=call.query.get("marker"), status=status, stack_id=stack_id
        )
    return Reply(200, {"software_triggers": [shown(each) for each in found]})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = triggers.get(tx, call.path["trigger_id"], call.project)
        each = targets_of(tx, found)
    return Reply(200, {"software_trigger": {**shown(found), "targets": each}})


def cancel(call: Call) -> Reply:
    force = bool(reading.flag(reading.optional_body(call).get("force"), "force"))

    def do(tx: Tx) -> Trigger:
        held = triggers.get(tx, call.path["trigger_id"], call.project, hold=True)
        return life.cancel(tx, call.services.engine.services, held, call.user.user_name, force=force)

    return Reply(202, {"software_trigger": shown(call.services.store.write(do))})


def retry(call: Call) -> Reply:
    said = reading.flag(reading.optional_body(call).get("only_failed"), "only_failed")

    def do(tx: Tx) -> Trigger:
        held = triggers.get(tx, call.path["trigger_id"], call.project, hold=True)
        return triggering.retry(
            tx, call.services.engine, held, only_failed=said is not False, asked_by=call.user.user_name
        )

    return Reply(201, {"software_trigger": shown(call.services.store.write(do))})


def delete(call: Call) -> Reply:
    def do(tx: Tx) -> None:
        held = triggers.get(tx, call.path["trigger_id"], call.project, hold=True)
        life.delete(tx, call.services.engine.services, held)

    call.services.store.write(do)
    return Reply(204)


def shown(trigger: Trigger) -> dict[str, Any]:
    options = trigger.options
    return {
        "id": trigger.id,
        "name": trigger.name,
        "action": trigger.action,
        "source": dict(trigger.source),
        "status": trigger.status,
        "status_reason": trigger.status_reason,
        "asked_by": trigger.asked_by,
        "schedule_id": trigger.schedule_id,
        "total": trigger.total,
        "queued": trigger.queued,
        "running": trigger.running,
        "complete": trigger.complete,
        "failed": trigger.failed,
        "cancelled": trigger.cancelled,
        "input_values": starred(trigger.input_values, options.secret),
        "signal_transport": options.signal_transport,
        "timeout": options.timeout,
        "max_concurrent": options.max_concurrent,
        "max_fail_percentage": options.max_fail_percentage,
        "in_window": options.in_window,
        "creation_time": shapes.time(trigger.created_at),
        "end_time": shapes.time(trigger.ended_at),
    }


def targets_of(tx: Tx, trigger: Trigger) -> list[dict[str, Any]]:
    found = targets.states(tx, trigger.id)
    current = runs.newest(tx, [each.deployment_id for each in found if each.deployment_id])
    now = datetime.now(UTC)
    return [target(each, current.get(each.deployment_id or ""), now) for each in found]


def target(each: Target, run: Run | None, now: datetime) -> dict[str, Any]:
    return {
        "position": each.position,
        "server_id": each.server_id,
        "server_name": each.server_name,
        "deployment_id": each.deployment_id,
        "name": each.name,
        "status": each.status,
        "status_reason": each.status_reason,
        "run": None if run is None else histories.shown(run, now),
    }
