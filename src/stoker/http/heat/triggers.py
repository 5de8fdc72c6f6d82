"""/v1/{project}/software_triggers: runs of actions on servers on demand (Stoker's own)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from stoker.deployments.derive import redact_named
from stoker.http import params
from stoker.http.heat import runs as histories
from stoker.http.heat import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.model.deployment import Run
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.trigger import Target, Trigger, TriggerStatus
from stoker.store import runs, targets, triggers
from stoker.store.tx import Tx
from stoker.triggers import creation, lifecycle
from stoker.triggers.request import parse
from stoker.triggers.targets import find_stack


def create(request: RequestContext) -> Response:
    """Start a trigger. The body may enclose it in ``software_trigger``."""
    body = params.body(request)
    trigger_request = parse(body.get("software_trigger", body))

    def do(tx: Tx) -> Response:
        made = creation.create(
            tx, request.app.engine, request.project, trigger_request, requested_by=request.user.user_name
        )
        return _serialize(tx, 201, made)

    return request.app.store.write(do)


def index(request: RequestContext) -> Response:
    """List triggers, optionally with one status or of one stack."""
    limit = params.whole(request.query.get("limit"), "limit", 1)
    status = request.query.get("status")
    if status not in (None, *TriggerStatus):
        raise Invalid(f"status must be one of {', '.join(TriggerStatus)}, not {status!r:.100}")
    stack = request.query.get("stack")
    with request.app.store.read() as tx:
        try:
            stack_id = None if stack is None else find_stack(tx, request.project, stack).id
        except EntityNotFound:
            stack_id = stack  # the triggers of a deleted stack still exist
        found = triggers.page(
            tx, request.project, limit=limit, marker=request.query.get("marker"), status=status, stack_id=stack_id
        )
    return Response(200, {"software_triggers": [serialize(tx, each) for each in found]})


def show(request: RequestContext) -> Response:
    """Return a trigger with its targets."""
    with request.app.store.read() as tx:
        found = triggers.get(tx, request.path["trigger_id"], request.project)
        each = targets_of(tx, found)
    return Response(200, {"software_trigger": {**serialize(tx, found), "targets": each}})


def cancel(request: RequestContext) -> Response:
    """
    Cancel a trigger: start no more runs and stop the running ones.

    The trigger ends when its runs have ended; with ``force``, without waiting for agents to stop them. Raises Conflict.
    """
    force = bool(params.flag(params.optional_body(request).get("force"), "force"))

    def do(tx: Tx) -> Response:
        held = triggers.get(tx, request.path["trigger_id"], request.project, for_update=True)
        return _serialize(
            tx, 202, lifecycle.cancel(tx, request.app.engine.env, held, request.user.user_name, force=force)
        )

    return request.app.store.write(do)


def retry(request: RequestContext) -> Response:
    """
    Start a new trigger with the targets that failed or were cancelled; with ``only_failed`` false, with all targets.

    Raises Conflict or Invalid.
    """
    said = params.flag(params.optional_body(request).get("only_failed"), "only_failed")

    def do(tx: Tx) -> Response:
        held = triggers.get(tx, request.path["trigger_id"], request.project, for_update=True)
        made = creation.retry(
            tx, request.app.engine, held, only_failed=said is not False, requested_by=request.user.user_name
        )
        return _serialize(tx, 201, made)

    return request.app.store.write(do)


def delete(request: RequestContext) -> Response:
    """Delete a trigger and its deployments. Raises Conflict while the trigger is in progress."""

    def do(tx: Tx) -> None:
        held = triggers.get(tx, request.path["trigger_id"], request.project, for_update=True)
        lifecycle.delete(tx, request.app.engine.env, held)

    request.app.store.write(do)
    return Response(204)


def serialize(tx: Tx, trigger: Trigger) -> dict[str, Any]:
    """Serialize a trigger, with the values of secret inputs redacted."""
    options = trigger.options
    return {
        "id": trigger.id,
        "name": trigger.name,
        "action": trigger.action,
        "source": dict(trigger.source),
        "status": trigger.status,
        "status_reason": trigger.status_reason,
        "requested_by": trigger.requested_by,
        "schedule_id": trigger.schedule_id,
        "total": trigger.total,
        "queued": trigger.queued,
        "running": trigger.running,
        "complete": trigger.complete,
        "failed": trigger.failed,
        "cancelled": trigger.cancelled,
        "input_values": tx.secrets.redact(redact_named(trigger.input_values, options.secret)),
        "signal_transport": options.signal_transport,
        "timeout": options.timeout,
        "max_concurrent": options.max_concurrent,
        "max_fail_percentage": options.max_fail_percentage,
        "require_window": options.require_window,
        "creation_time": serializers.time(trigger.created_at),
        "end_time": serializers.time(trigger.ended_at),
    }


def targets_of(tx: Tx, trigger: Trigger) -> list[dict[str, Any]]:
    """Serialize the targets of a trigger, each with its newest run."""
    found = targets.states(tx, trigger.id)
    current = runs.newest(tx, [each.deployment_id for each in found if each.deployment_id])
    now = datetime.now(UTC)
    return [target(tx, each, current.get(each.deployment_id or ""), now) for each in found]


def target(tx: Tx, each: Target, run: Run | None, now: datetime) -> dict[str, Any]:
    """Serialize a target with its newest run."""
    return {
        "position": each.position,
        "server_id": each.server_id,
        "server_name": each.server_name,
        "deployment_id": each.deployment_id,
        "name": each.name,
        "status": each.status,
        "status_reason": each.status_reason,
        "run": None if run is None else histories.serialize(tx, run, now),
    }


def _serialize(tx: Tx, status: int, trigger: Trigger) -> Response:
    return Response(status, {"software_trigger": serialize(tx, trigger)})
