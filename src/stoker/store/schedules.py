"""Schedules in SQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.errors import Conflict, EntityNotFound
from stoker.model.trigger import Schedule
from stoker.store import rows
from stoker.store.schema import schedules
from stoker.store.tx import Tx

_KEPT = ("id", "project_id", "asked_by", "created_at", "seq")
_CHANGING = tuple(column.name for column in schedules.c if column.name not in _KEPT)

_ADD = sa.insert(schedules)
_GET = sa.select(schedules).where(schedules.c.id == sa.bindparam("id"))
_HOLD = _GET.with_for_update()
_LIST = sa.select(schedules).where(schedules.c.project_id == sa.bindparam("project")).order_by(schedules.c.seq)
_NAMED = sa.select(schedules.c.id).where(
    schedules.c.project_id == sa.bindparam("project"), schedules.c.name == sa.bindparam("named")
)
_SAVE = (
    sa.update(schedules)
    .where(schedules.c.id == sa.bindparam("id_"))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_DELETE = sa.delete(schedules).where(schedules.c.id == sa.bindparam("id_"))


def add(tx: Tx, new: Schedule) -> None:
    """Raises Conflict when another has that name."""
    _refuse_twin(tx, new)
    try:
        tx.run(_ADD, {"id": new.id, "project_id": new.project_id, **_columns(new)})
    except sa.exc.IntegrityError:  # somebody else was quicker, between the look and the insert
        raise _taken(new) from None


def find(tx: Tx, id: str, *, hold: bool = False) -> Schedule | None:
    row = tx.run(_HOLD if hold else _GET, {"id": id}).first()
    return None if row is None else _schedule(row)


def get(tx: Tx, id: str, project_id: str, *, hold: bool = False) -> Schedule:
    """Raises EntityNotFound."""
    found = find(tx, id, hold=hold)
    if found is None or found.project_id != project_id:
        raise EntityNotFound.of("Software schedule", id)
    return found


def listed(tx: Tx, project_id: str) -> list[Schedule]:
    """Oldest first."""
    return [_schedule(row) for row in tx.run(_LIST, {"project": project_id})]


def save(tx: Tx, changed: Schedule) -> None:
    """Raises Conflict when another has that name."""
    _refuse_twin(tx, changed)
    columns = _columns(changed)
    try:
        tx.run(_SAVE, {"id_": changed.id, **{f"new_{name}": columns[name] for name in _CHANGING}})
    except sa.exc.IntegrityError:
        raise _taken(changed) from None


def delete(tx: Tx, id: str) -> None:
    tx.run(_DELETE, {"id_": id})


def _refuse_twin(tx: Tx, schedule: Schedule) -> None:
    twin = tx.run(_NAMED, {"project": schedule.project_id, "named": schedule.name}).scalar()
    if twin not in (None, schedule.id):
        raise _taken(schedule)


def _taken(schedule: Schedule) -> Conflict:
    return Conflict(f"A schedule named {schedule.name!r} exists already: change that one, or choose another name.")


def _columns(schedule: Schedule) -> dict[str, Any]:
    return {
        "name": schedule.name,
        "body": rows.dump({"trigger": schedule.body, "secret": schedule.secret}),
        "cron": schedule.cron,
        "at": rows.stamp_optional(schedule.at),
        "timezone": schedule.timezone,
        "in_window": schedule.in_window,
        "missed": schedule.missed,
        "enabled": schedule.enabled,
        "asked_by": schedule.asked_by,
        "next_at": rows.stamp_optional(schedule.next_at),
        "last_at": rows.stamp_optional(schedule.last_at),
        "last_trigger_id": schedule.last_trigger_id,
        "last_error": schedule.last_error,
        "times": schedule.times,
        "times_missed": schedule.times_missed,
        "created_at": rows.stamp(schedule.created_at),
    }


def _schedule(row: Any) -> Schedule:
    kept = rows.load(row.body)
    return Schedule(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        body=kept["trigger"],
        secret=tuple(kept["secret"]),
        cron=row.cron,
        at=rows.moment_optional(row.at),
        timezone=row.timezone,
        in_window=bool(row.in_window),
        missed=row.missed,
        enabled=bool(row.enabled),
        asked_by=row.asked_by,
        next_at=rows.moment_optional(row.next_at),
        last_at=rows.moment_optional(row.last_at),
        last_trigger_id=row.last_trigger_id,
        last_error=row.last_error,
        times=row.times,
        times_missed=row.times_missed,
        created_at=rows.moment(row.created_at),
    )
