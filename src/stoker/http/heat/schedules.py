"""/v1/{project}/software_schedules: schedules that create triggers (Stoker's own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.derive import redact_named
from stoker.http import params
from stoker.http.heat import serializers
from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import Invalid
from stoker.model.trigger import Schedule
from stoker.store import schedules as stored
from stoker.store.tx import Tx
from stoker.triggers import schedules

#: Read-only members. Requests may contain them, because clients send back what they read.
_OURS = frozenset(
    (
        *("id", "next_time", "last_time", "last_trigger_id", "last_error", "run_count", "missed_count", "requested_by"),
        "creation_time",
    )
)


def create(request: RequestContext) -> Response:
    """Create a schedule. Its trigger is checked as if it started now. Raises Invalid, EntityNotFound or Conflict."""
    said = _read_body(request)

    def do(tx: Tx) -> Response:
        made = schedules.create(tx, request.app.engine, request.project, said, requested_by=request.user.user_name)
        return _serialize(tx, 201, made)

    return request.app.store.write(do)


def index(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = stored.list_all(tx, request.project)
    return Response(200, {"software_schedules": [serialize(tx, each) for each in found]})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        return _serialize(tx, 200, stored.get(tx, request.path["schedule_id"], request.project))


def change(request: RequestContext) -> Response:
    """Change the members of the schedule that the body contains. Raises the same errors as ``create``."""
    said = _read_body(request)

    def do(tx: Tx) -> Response:
        held = stored.get(tx, request.path["schedule_id"], request.project, for_update=True)
        return _serialize(tx, 200, schedules.change(tx, request.app.engine, held, said))

    return request.app.store.write(do)


def delete(request: RequestContext) -> Response:
    """Delete a schedule. Its triggers remain."""

    def do(tx: Tx) -> None:
        held = stored.get(tx, request.path["schedule_id"], request.project, for_update=True)
        schedules.delete(tx, request.app.engine, held)

    request.app.store.write(do)
    return Response(204)


def serialize(tx: Tx, schedule: Schedule) -> dict[str, Any]:
    """Serialize a schedule, with the values of secret inputs redacted."""
    body = dict(schedule.body)
    if isinstance(body.get("input_values"), Mapping):
        body["input_values"] = redact_named(body["input_values"], schedule.secret)
    return {
        "id": schedule.id,
        "name": schedule.name,
        "trigger": tx.secrets.redact(body),
        "cron": schedule.cron,
        "at": serializers.time(schedule.at),
        "timezone": schedule.timezone,
        "require_window": schedule.require_window,
        "misfire_policy": schedule.misfire_policy,
        "enabled": schedule.enabled,
        "next_time": serializers.time(schedule.next_at),
        "last_time": serializers.time(schedule.last_at),
        "last_trigger_id": schedule.last_trigger_id,
        "last_error": schedule.last_error,
        "run_count": schedule.run_count,
        "missed_count": schedule.missed_count,
        "requested_by": schedule.requested_by,
        "creation_time": serializers.time(schedule.created_at),
    }


def _read_body(request: RequestContext) -> dict[str, Any]:
    """Return the schedule from the body, with or without the enclosing ``software_schedule``."""
    body = params.body(request)
    said = body.get("software_schedule", body)
    if not isinstance(said, dict):
        raise Invalid("software_schedule must be a map")
    return {name: value for name, value in said.items() if name not in _OURS}


def _serialize(tx: Tx, status: int, schedule: Schedule) -> Response:
    return Response(status, {"software_schedule": serialize(tx, schedule)})
