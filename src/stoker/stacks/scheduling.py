"""
Triggers by the clock: a job that stands at the next time, and puts itself to the one after.

A job that finds its schedule at another time than its own is stale and does nothing, so that a time counts once,
however often its job is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from stoker.deployments import gate, triggers
from stoker.deployments.derive import STARS
from stoker.model.errors import DeploymentRefused, Invalid, StokerError, Unavailable
from stoker.model.trigger import Missed, Schedule, TriggerStatus
from stoker.stacks import asking, triggering
from stoker.stacks.engine import Engine
from stoker.stacks.targeting import resolve
from stoker.store import rows, schedules
from stoker.store import triggers as stored
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import cron, defer_once

#: Kind of the job that triggers what a schedule says.
RUN = "schedule.run"
#: Kind of the job that deletes a schedule's old triggers; its key: the schedule's id.
TIDY = "schedule.tidy"
#: A time that is longer ago was missed.
LATE = timedelta(minutes=1)
#: Ended triggers of a schedule that are kept.
KEPT = 20
#: Missed times that are counted one by one.
_COUNTED = 10_000
_NAME = 255
_CLOCK = ("cron", "at", "timezone", "enabled")
KNOWN = ("name", "trigger", *_CLOCK, "in_window", "missed")


def create(tx: Tx, engine: Engine, project_id: str, said: Mapping[str, Any], *, asked_by: str) -> Schedule:
    """Raises Invalid, EntityNotFound, Conflict: what could not be triggered now is no schedule."""
    if "trigger" not in said or "name" not in said:
        raise Invalid("a schedule needs a name and a trigger: what to trigger")
    empty = Schedule(id=str(uuid4()), project_id=project_id, name="", body={}, asked_by=asked_by, created_at=tx.now)
    made = _with(tx, engine, empty, said)
    if made.cron is None and made.at is None:
        raise Invalid("a schedule needs cron, or at for one time")
    made = _placed(tx, engine, made)
    schedules.add(tx, made)
    return made


def change(tx: Tx, engine: Engine, held: Schedule, said: Mapping[str, Any]) -> Schedule:
    """``held`` must be held. What is not said stays. Raises as ``create``."""
    changed = _with(tx, engine, held, said)
    if any(name in said for name in _CLOCK):
        changed = _placed(tx, engine, changed)
    schedules.save(tx, changed)
    return changed


def delete(tx: Tx, engine: Engine, held: Schedule) -> None:
    """What it has triggered stays."""
    for kind in (RUN, TIDY):
        engine.services.work.cancel(tx, kind, held.id)
    schedules.delete(tx, held.id)


def register(store: Store, engine: Engine) -> None:
    engine.services.work.register(RUN, lambda args: run(store, engine, args))
    engine.services.work.register(TIDY, lambda args: store.write(lambda tx: tidy(tx, engine, args)))


def run(store: Store, engine: Engine, args: Mapping[str, Any]) -> None:
    """The job. What is refused is told in the schedule, which goes on; of a database that is away, nothing is told."""
    try:
        store.write(lambda tx: _run(tx, engine, args))
    except Unavailable:
        raise
    except StokerError as error:
        if isinstance(error, DeploymentRefused):
            gate.keep(store, error)
        refused = error.message
        store.write(lambda tx: _run(tx, engine, args, refused))


def _run(tx: Tx, engine: Engine, args: Mapping[str, Any], refused: str | None = None) -> None:
    schedule = schedules.find(tx, args["schedule_id"], hold=True)
    if schedule is None or schedule.next_at is None or rows.stamp(schedule.next_at) != args["at"]:
        return
    passed, on_time = _passed(schedule, schedule.next_at, tx.now)
    missed = passed - on_time
    told = replace(schedule, last_at=schedule.next_at, times_missed=schedule.times_missed + missed)
    if on_time or schedule.missed == Missed.RUN:
        if refused is None:
            begun = triggering.begin(
                tx, engine, schedule.project_id, _asked(schedule), asked_by=schedule.asked_by, schedule_id=schedule.id
            )
            told = replace(told, last_trigger_id=begun.id, last_error=None, times=told.times + 1)
        else:
            told = replace(told, last_error=refused)
    # The database, whose clock says when jobs are due, may be ahead of this process.
    since = max(tx.now, schedule.next_at)
    next_at = None if schedule.cron is None else cron.read(schedule.cron, schedule.timezone).after(since)
    schedules.save(tx, _at(tx, engine, replace(told, next_at=next_at)))
    if stored.beyond(tx, schedule.project_id, schedule.id, KEPT):
        _tidy_later(tx, engine, schedule.project_id, schedule.id)


def tidy(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """The job: delete the oldest ended triggers of a schedule, a transaction's share at a time."""
    left = triggers.SHARE
    for id in stored.beyond(tx, args["project_id"], args["schedule_id"], KEPT):
        old = stored.find(tx, id, hold=True)
        if old is None or old.status == TriggerStatus.IN_PROGRESS:
            continue  # somebody has deleted it, or runs what failed of it again
        left -= triggers.delete_some(tx, engine.services, old, left)
        if not left:
            _tidy_later(tx, engine, args["project_id"], args["schedule_id"])
            return


def _tidy_later(tx: Tx, engine: Engine, project_id: str, schedule_id: str) -> None:
    defer_once(engine.services.work, tx, TIDY, schedule_id, {"project_id": project_id, "schedule_id": schedule_id})


def _asked(schedule: Schedule) -> asking.Asked:
    """What it triggers each time. Raises Invalid."""
    return asking.read({**schedule.body, **({"in_window": True} if schedule.in_window else {})})


def _passed(schedule: Schedule, due: datetime, now: datetime) -> tuple[int, bool]:
    """How many times there were from ``due`` until now, and whether the last is not too long ago."""
    count, last = 1, due
    if schedule.cron is not None:
        for each in cron.read(schedule.cron, schedule.timezone).times(due):
            if each > now or count == _COUNTED:
                break
            count, last = count + 1, each
    return count, now - last <= LATE


def _placed(tx: Tx, engine: Engine, schedule: Schedule) -> Schedule:
    """At the time that comes next. Raises Invalid for a single time that has passed."""
    if not schedule.enabled:
        return _at(tx, engine, replace(schedule, next_at=None))
    if schedule.cron is not None:
        return _at(tx, engine, replace(schedule, next_at=cron.read(schedule.cron, schedule.timezone).after(tx.now)))
    if schedule.at is not None and schedule.at <= tx.now:
        raise Invalid(f"at has passed: it is {rows.heat_time(tx.now)}")
    return _at(tx, engine, replace(schedule, next_at=schedule.at))


def _at(tx: Tx, engine: Engine, schedule: Schedule) -> Schedule:
    work = engine.services.work
    work.cancel(tx, RUN, schedule.id)
    if schedule.next_at is not None:
        args = {"schedule_id": schedule.id, "at": rows.stamp(schedule.next_at)}
        work.defer(tx, RUN, schedule.id, args, at=schedule.next_at)
    return schedule


def _with(tx: Tx, engine: Engine, old: Schedule, said: Mapping[str, Any]) -> Schedule:
    if unknown := sorted(set(said) - set(KNOWN)):
        raise Invalid(f"a schedule has no {unknown[0]!r:.100}; known are {', '.join(KNOWN)}")
    if said.get("cron") is not None and said.get("at") is not None:
        raise Invalid("a schedule has cron or at, not both")
    changed = old
    if "name" in said:
        changed = replace(changed, name=_name(said["name"]))
    if "timezone" in said:
        changed = replace(changed, timezone=_zone(said["timezone"]))
    if said.get("cron") is not None:
        changed = replace(changed, cron=_cron(said["cron"], changed.timezone), at=None)
    if said.get("at") is not None:
        changed = replace(changed, at=_moment(said["at"], changed.timezone), cron=None)
    if said.get("missed") is not None:
        changed = replace(changed, missed=_missed(said["missed"]))
    flags: dict[str, Any] = {
        name: asking.flag(said[name], name) for name in ("in_window", "enabled") if said.get(name) is not None
    }
    changed = replace(changed, **flags)
    if "trigger" in said:
        asking.read(body := _unstarred(said["trigger"], old))
        changed = replace(changed, body=body)
    if "trigger" in said or changed.in_window > old.in_window:
        asked = _asked(changed)
        meant = resolve(tx, engine, old.project_id, asked)
        triggering.check(tx, engine, meant, asked)
        changed = replace(changed, secret=triggering.secret_of(meant.source))
    return changed


def _unstarred(body: Any, old: Schedule) -> Any:
    """Who changes what was shown sends back stars for what was not."""
    values, before = (body.get("input_values") if isinstance(body, Mapping) else None), old.body.get("input_values")
    if not isinstance(values, Mapping) or not before:
        return body
    kept = {
        name: before[name] if value == STARS and name in old.secret and name in before else value
        for name, value in values.items()
    }
    return {**body, "input_values": kept}


def _name(value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _NAME or "\0" in value:
        raise Invalid(f"name must be 1 to {_NAME} characters, without NUL")
    return value


def _zone(value: Any) -> str:
    return "UTC" if value is None else cron.zone_of(value).key


def _cron(value: Any, zone: str) -> str:
    return cron.read(value, zone).expression


def _moment(value: Any, zone: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo else found.replace(tzinfo=cron.zone_of(zone))).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise Invalid(f"at must be a time such as 2026-01-01T00:00:00Z, not {value!r:.100}") from None


def _missed(value: Any) -> str:
    if value not in tuple(Missed):
        raise Invalid(f"missed must be one of {', '.join(Missed)}, not {value!r:.100}")
    return str(value)
