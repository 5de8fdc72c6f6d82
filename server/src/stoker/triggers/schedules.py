"""
Schedules: a job at the next time starts the trigger and defers the job for the following time.

A job whose time differs from its schedule's is stale and does nothing, so that a time counts once, even if its job runs
several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import structlog
from msgspec import UNSET
from msgspec.structs import replace

from stoker.model.errors import DeploymentRefused, Invalid, StokerError, Unavailable
from stoker.model.secrets import REDACTED
from stoker.model.trigger import MisfirePolicy, OverlapPolicy, Schedule, Trigger
from stoker.policy import authorizer
from stoker.stacks.engine import Engine
from stoker.store import configs, rows, triggers
from stoker.store import triggers as stored
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.triggers import creation, lifecycle, request
from stoker.triggers.request import ScheduleRequest, TriggerRequest
from stoker.triggers.targets import resolve
from stoker.work import cron

_log = structlog.get_logger("stoker.triggers")

#: Kind of the job that starts a schedule's trigger.
RUN = "schedule.run"
#: Kind of the job that deletes a schedule's old triggers. Its key is the schedule's id.
TIDY = "schedule.tidy"
#: A time that passed longer ago counts as missed.
LATE = timedelta(minutes=1)
#: Number of ended triggers that each schedule keeps.
KEPT = 20
#: Maximum number of missed times that are counted.
_COUNTED = 10_000


def create(tx: Tx, engine: Engine, project_id: str, wanted: ScheduleRequest, *, requested_by: str) -> Schedule:
    """Store the requested schedule and defer its first job. Raises as the start of its trigger would now."""
    if wanted.trigger is UNSET or wanted.name is UNSET:
        raise Invalid("a schedule needs a name and a trigger: what to trigger")
    empty = Schedule(
        id=str(uuid4()), project_id=project_id, name="", body={}, requested_by=requested_by, created_at=tx.now
    )
    schedule = _with(tx, engine, empty, wanted)
    if schedule.cron is None and schedule.at is None:
        raise Invalid("a schedule needs cron, or at for one time")
    schedule = _place(tx, engine, schedule)
    triggers.add_schedule(tx, schedule)
    return schedule


def change(tx: Tx, engine: Engine, schedule: Schedule, wanted: ScheduleRequest) -> Schedule:
    """Change a locked schedule. What the request does not name stays. Raises the same errors as ``create``."""
    changed = _with(tx, engine, schedule, wanted)
    if wanted.moves:
        changed = _place(tx, engine, changed)
    triggers.save_schedule(tx, changed)
    return changed


def delete(tx: Tx, engine: Engine, schedule: Schedule) -> None:
    """Delete a locked schedule. Its triggers stay."""
    for kind in (RUN, TIDY):
        engine.env.work.cancel(tx, kind, schedule.id)
    triggers.delete_schedule(tx, schedule.id)


def run(store: Store, engine: Engine, args: Mapping[str, Any]) -> None:
    """
    Job: start the trigger of a schedule. One that cannot start is stored as FAILED, and the schedule continues; if the
    database is unavailable, the job is retried.
    """
    try:
        store.write(lambda tx: _run(tx, engine, args))
    except Unavailable:
        raise
    except StokerError as error:
        if isinstance(error, DeploymentRefused):
            authorizer.record_denial(store, error)
        reason = error.message
        store.write(lambda tx: _run(tx, engine, args, reason))


def _run(tx: Tx, engine: Engine, args: Mapping[str, Any], failure: str | None = None) -> None:
    """Handle the due time. ``failure``: why the first attempt started nothing."""
    schedule = triggers.find_schedule(tx, args["schedule_id"], for_update=True)
    if schedule is None or schedule.next_at is None or rows.to_micros(schedule.next_at) != args["at"]:
        return
    passed, on_time = _count_passed(schedule, schedule.next_at, tx.now)
    missed = passed - on_time
    updated = replace(schedule, last_at=schedule.next_at, missed_count=schedule.missed_count + missed)
    if on_time or schedule.misfire_policy == MisfirePolicy.RUN:
        if failure is None:
            trigger = start(tx, engine, schedule, requested_by=schedule.requested_by)
            tx.after_commit(partial(_log.info, "schedule.started", **_fields(schedule), trigger_id=trigger.id))
            updated = replace(updated, last_trigger_id=trigger.id, last_error=None, run_count=updated.run_count + 1)
        else:
            failed = creation.record_failure(tx, engine, schedule, failure)
            updated = replace(updated, last_trigger_id=failed.id, last_error=failure)
            facts = {**_fields(schedule), "trigger_id": failed.id, "reason": failed.status_reason}
            tx.after_commit(partial(_log.warning, "schedule.failed", **facts))
    if missed:
        tx.after_commit(partial(_log.warning, "schedule.missed", **_fields(schedule), missed=missed))
    # The clock of the database server may have been set back since the job became due.
    since = max(tx.now, schedule.next_at)
    next_at = None if schedule.cron is None else cron.read(schedule.cron, schedule.timezone).after(since)
    triggers.save_schedule(tx, _at(tx, engine, replace(updated, next_at=next_at)))
    if stored.oldest_beyond(tx, schedule.project_id, schedule.id, KEPT):
        args = {"project_id": schedule.project_id, "schedule_id": schedule.id}
        engine.env.work.defer_once(tx, TIDY, schedule.id, args)


def start(tx: Tx, engine: Engine, schedule: Schedule, *, requested_by: str | None) -> Trigger:
    """
    Start the trigger of a locked schedule. By default, it replaces the runs of earlier times that have not started.

    Raises the same errors as ``create``, and DeploymentRefused.
    """
    earlier: list[Trigger] = []
    if schedule.overlap_policy == OverlapPolicy.REPLACE:
        # The locks come before those that the new trigger takes.
        ids = stored.list_running(tx, schedule.project_id, schedule.id)
        earlier = [trigger for id in ids if (trigger := stored.find(tx, id, for_update=True)) is not None]
    new = creation.create(
        tx,
        engine,
        schedule.project_id,
        read_request(schedule),
        requested_by=requested_by,
        schedule_id=schedule.id,
    )
    for trigger in earlier:
        lifecycle.replace_waiting(tx, engine.env, trigger, new.id)
    return new


def _fields(schedule: Schedule) -> dict[str, str]:
    """The fields of the schedule in its log lines."""
    return {"schedule_id": schedule.id, "schedule": schedule.name, "project_id": schedule.project_id}


def tidy(store: Store, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: delete the oldest ended triggers of a schedule."""
    with store.read() as tx:
        ids = stored.oldest_beyond(tx, args["project_id"], args["schedule_id"], KEPT)
    for id in ids:
        lifecycle.purge(store, engine.env, id)


def read_request(schedule: Schedule) -> TriggerRequest:
    """Return the request that the schedule triggers each time. Raises Invalid."""
    return request.parse({**schedule.body, **({"require_window": True} if schedule.require_window else {})})


def _count_passed(schedule: Schedule, due: datetime, now: datetime) -> tuple[int, bool]:
    """Return the number of times from ``due`` until ``now``, and whether the last of them is recent enough."""
    count, last = 1, due
    if schedule.cron is not None:
        for time in cron.read(schedule.cron, schedule.timezone).times(due):
            if time > now or count == _COUNTED:
                break
            count, last = count + 1, time
    return count, now - last <= LATE


def _place(tx: Tx, engine: Engine, schedule: Schedule) -> Schedule:
    """Compute the schedule's next time and defer its job. Raises Invalid for a single time in the past."""
    if not schedule.enabled:
        return _at(tx, engine, replace(schedule, next_at=None))
    if schedule.cron is not None:
        return _at(tx, engine, replace(schedule, next_at=cron.read(schedule.cron, schedule.timezone).after(tx.now)))
    if schedule.at is not None and schedule.at <= tx.now:
        raise Invalid(f"at has passed: it is {rows.heat_time(tx.now)}")
    return _at(tx, engine, replace(schedule, next_at=schedule.at))


def _at(tx: Tx, engine: Engine, schedule: Schedule) -> Schedule:
    work = engine.env.work
    work.cancel(tx, RUN, schedule.id)
    if schedule.next_at is not None:
        args = {"schedule_id": schedule.id, "at": rows.to_micros(schedule.next_at)}
        work.defer(tx, RUN, schedule.id, args, at=schedule.next_at)
    return schedule


def _with(tx: Tx, engine: Engine, old: Schedule, wanted: ScheduleRequest) -> Schedule:
    changes: dict[str, Any] = {
        name: value
        for name in ("name", "require_window", "enabled", "misfire_policy", "overlap_policy")
        if (value := getattr(wanted, name)) not in (None, UNSET)
    }
    if wanted.timezone is not UNSET:
        changes["timezone"] = "UTC" if wanted.timezone is None else cron.zone_of(wanted.timezone).key
    zone = changes.get("timezone", old.timezone)
    if wanted.cron is not None:
        changes |= {"cron": cron.read(wanted.cron, zone).expression, "at": None}
    if wanted.at is not None:
        changes |= {"at": _moment(wanted.at, zone), "cron": None}
    if wanted.trigger is not UNSET:
        changes["body"] = _restore_redacted(wanted.trigger, old)
        request.parse(changes["body"])
    changed = replace(old, **changes)
    if wanted.trigger is not UNSET or changed.require_window > old.require_window:
        changed = _resolve(tx, engine, changed)
    return changed


def _resolve(tx: Tx, engine: Engine, schedule: Schedule) -> Schedule:
    """Return the schedule with the names of its secret inputs, after a check of its trigger. Raises as ``create``."""
    trigger_request = read_request(schedule)
    if trigger_request.config_id is not None:
        configs.lock(tx, trigger_request.config_id)
    resolved = resolve(tx, engine, schedule.project_id, trigger_request)
    creation.check(tx, engine, resolved, trigger_request)
    return replace(schedule, secret=creation.secret_of(resolved.source))


def _restore_redacted(body: Mapping[str, Any], old: Schedule) -> Mapping[str, Any]:
    """Restore secret values that a client sent back as REDACTED."""
    values, before = body.get("input_values"), old.body.get("input_values")
    if not isinstance(values, Mapping) or not before:
        return body
    kept = {
        name: before[name] if value == REDACTED and name in old.secret and name in before else value
        for name, value in values.items()
    }
    return {**body, "input_values": kept}


def _moment(value: str, zone: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=cron.zone_of(zone))).astimezone(UTC)
    except (ValueError, OverflowError):
        raise Invalid(f"at must be a time such as 2026-01-01T00:00:00Z, not {value!r:.100}") from None
