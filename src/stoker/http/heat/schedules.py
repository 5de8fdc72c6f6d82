"""/v1/{project}/software_schedules: triggers by the clock (Stoker's own)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.deployments.derive import starred
from stoker.http import reading
from stoker.http.call import Call, Reply
from stoker.http.heat import shapes
from stoker.model.errors import Invalid
from stoker.model.trigger import Schedule
from stoker.stacks import scheduling
from stoker.store import schedules
from stoker.store.tx import Tx

#: Shown, and taken from who sends back what was shown.
_OURS = frozenset(
    (
        *("id", "next_time", "last_time", "last_trigger_id", "last_error", "times", "times_missed", "asked_by"),
        "creation_time",
    )
)


def create(call: Call) -> Reply:
    said = _said(call)
    made = call.services.store.write(
        lambda tx: scheduling.create(tx, call.services.engine, call.project, said, asked_by=call.user.user_name)
    )
    return _shown(201, made)


def index(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = schedules.listed(tx, call.project)
    return Reply(200, {"software_schedules": [shown(each) for each in found]})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        return _shown(200, schedules.get(tx, call.path["schedule_id"], call.project))


def change(call: Call) -> Reply:
    said = _said(call)

    def do(tx: Tx) -> Schedule:
        held = schedules.get(tx, call.path["schedule_id"], call.project, hold=True)
        return scheduling.change(tx, call.services.engine, held, said)

    return _shown(200, call.services.store.write(do))


def delete(call: Call) -> Reply:
    def do(tx: Tx) -> None:
        held = schedules.get(tx, call.path["schedule_id"], call.project, hold=True)
        scheduling.delete(tx, call.services.engine, held)

    call.services.store.write(do)
    return Reply(204)


def shown(schedule: Schedule) -> dict[str, Any]:
    body = dict(schedule.body)
    if isinstance(body.get("input_values"), Mapping):
        body["input_values"] = starred(body["input_values"], schedule.secret)
    return {
        "id": schedule.id,
        "name": schedule.name,
        "trigger": body,
        "cron": schedule.cron,
        "at": shapes.time(schedule.at),
        "timezone": schedule.timezone,
        "in_window": schedule.in_window,
        "missed": schedule.missed,
        "enabled": schedule.enabled,
        "next_time": shapes.time(schedule.next_at),
        "last_time": shapes.time(schedule.last_at),
        "last_trigger_id": schedule.last_trigger_id,
        "last_error": schedule.last_error,
        "times": schedule.times,
        "times_missed": schedule.times_missed,
        "asked_by": schedule.asked_by,
        "creation_time": shapes.time(schedule.created_at),
    }


def _said(call: Call) -> dict[str, Any]:
    """Bare, or under its noun as it is shown."""
    body = reading.body(call)
    said = body.get("software_schedule", body)
    if not isinstance(said, dict):
        raise Invalid("software_schedule must be a map")
    return {name: value for name, value in said.items() if name not in _OURS}


def _shown(status: int, schedule: Schedule) -> Reply:
    return Reply(status, {"software_schedule": shown(schedule)})
