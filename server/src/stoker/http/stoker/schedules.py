"""/v1/{project}/software_schedules: schedules that create triggers (Stoker's own)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from msgspec import Meta, field

from stoker.deployments.derive import redact_named
from stoker.http.api import clock_warning
from stoker.http.contracts import (
    Answer,
    Count,
    Id,
    Moment,
    Positive,
    Query,
    Time,
    fill,
    operation,
)
from stoker.http.request import RequestContext, Response
from stoker.http.stoker.triggers import SoftwareTrigger
from stoker.http.stoker.triggers import serialize as serialize_trigger
from stoker.model.trigger import MisfirePolicy, OverlapPolicy, Schedule
from stoker.store import configs
from stoker.store import triggers as stored
from stoker.store.tx import Tx
from stoker.triggers import schedules
from stoker.triggers.forecast import OpenPeriod, ScheduledTime, forecast
from stoker.triggers.request import ScheduleRequest

#: Times of a forecast at most, and its range without an end.
MOST_TIMES, _WEEK = 1000, timedelta(days=7)


class SoftwareSchedule(Answer):
    id: Id
    name: str
    trigger: Annotated[
        dict[str, Any], Meta(description="The body of a request to trigger, with the values of secret inputs redacted")
    ]
    config_name: Annotated[str | None, Meta(description="The name of the config that the trigger's `config_id` names")]
    cron: str | None
    at: Time | None
    timezone: str
    require_window: bool
    misfire_policy: MisfirePolicy
    overlap_policy: OverlapPolicy
    enabled: bool
    next_at: Time | None = field(name="next_time")
    last_at: Time | None = field(name="last_time")
    last_trigger_id: Id | None
    last_error: Annotated[str | None, Meta(description="Why the last time started no trigger")]
    run_count: Count
    missed_count: Count
    requested_by: str | None
    created_at: Time = field(name="creation_time")


class ForecastQuery(Query):
    begin: Annotated[Moment | None, Meta(description="The first time; by default, and at the earliest, now")] = field(
        name="from", default=None
    )
    until: Annotated[Moment | None, Meta(description="The end of the range; by default a week after its begin")] = None
    limit: Annotated[Positive, Meta(description="At most this number of times, and at most 1,000")] = MOST_TIMES


_ANSWER = {"software_schedule": SoftwareSchedule}


@operation(
    201,
    _ANSWER,
    errors=(409,),
    example={
        "name": "nightly",
        "trigger": {"stack": "shop", "resource": "database", "action": "BACKUP"},
        "cron": "0 2 * * *",
        "timezone": "Europe/Vienna",
    },
)
def create(request: RequestContext, tx: Tx, body: ScheduleRequest) -> Response:
    """Create a schedule. Its trigger is checked as if it started now. Raises Invalid, EntityNotFound or Conflict."""
    user = request.user.user_name
    request.subject.detail = str(body.name or None)
    schedule = schedules.create(tx, request.app.engine, request.project, body, requested_by=user)
    return _answer(request, tx, schedule, 201)


class ScheduleQuery(Query):
    next_before: Annotated[Moment | None, Meta(description="Only schedules whose next time is before this")] = None


@operation(200, {"software_schedules": list[SoftwareSchedule]})
def index(request: RequestContext, tx: Tx, query: ScheduleQuery) -> Response:
    """List the project's schedules."""
    listed = stored.list_schedules(tx, request.project, query.next_before)
    configs.prime(tx, [schedule.body["config_id"] for schedule in listed if schedule.body.get("config_id")])
    shown = [serialize(tx, schedule) for schedule in listed]
    return Response(200, {"software_schedules": shown}, clock_warning(request))


@operation(200, {"forecast": list[ScheduledTime], "more": bool, "windows": list[OpenPeriod]})
def predict(request: RequestContext, tx: Tx, query: ForecastQuery) -> dict[str, Any]:
    """
    List the times at which the project's schedules will start their triggers, the earliest first.

    `windows` has the open maintenance windows of the servers of these schedules.
    """
    begin = max(query.begin or tx.now, tx.now)
    until = query.until or begin + _WEEK
    times, more, windows = forecast(tx, request.app.engine, request.project, begin, until, min(query.limit, MOST_TIMES))
    return {"forecast": times, "more": more, "windows": windows}


@operation(200, _ANSWER)
def show(request: RequestContext, tx: Tx) -> Response:
    """Return a schedule."""
    return _answer(request, tx, stored.get_schedule(tx, request.path["schedule_id"], request.project))


@operation(200, _ANSWER, errors=(409,))
def change(request: RequestContext, tx: Tx, body: ScheduleRequest) -> Response:
    """Change the members of the schedule that the body contains. Raises the same errors as ``create``."""
    return _answer(request, tx, schedules.change(tx, request.app.engine, _find_locked(tx, request), body))


@operation(201, {"software_trigger": SoftwareTrigger}, errors=(409,))
def run(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Start the trigger of a schedule now, in addition to its times. Raises Invalid, EntityNotFound or Conflict."""
    schedule, user = _find_locked(tx, request), request.user.user_name
    trigger = schedules.start(tx, request.app.engine, schedule, requested_by=user)
    return {"software_trigger": serialize_trigger(tx, trigger)}


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a schedule. Its triggers remain."""
    schedules.delete(tx, request.app.engine, _find_locked(tx, request))


def _find_locked(tx: Tx, request: RequestContext) -> Schedule:
    """Return the schedule of the path, lock its row, and name it for the audit log. Raises EntityNotFound."""
    schedule = stored.get_schedule(tx, request.path["schedule_id"], request.project, for_update=True)
    request.subject.detail = schedule.name
    return schedule


def serialize(tx: Tx, schedule: Schedule) -> SoftwareSchedule:
    """Serialize a schedule, with the values of secret inputs redacted."""
    body = dict(schedule.body)
    if isinstance(body.get("input_values"), Mapping):
        body["input_values"] = redact_named(body["input_values"], schedule.secret)
    config_id = body.get("config_id")
    name = configs.find_name(tx, config_id) if config_id else None
    return fill(SoftwareSchedule, schedule, trigger=tx.secrets.redact(body), config_name=name)


def _answer(request: RequestContext, tx: Tx, schedule: Schedule, status: int = 200) -> Response:
    return Response(status, {"software_schedule": serialize(tx, schedule)}, clock_warning(request))
