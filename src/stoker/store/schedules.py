"""Queries for schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.errors import Conflict, EntityNotFound
from stoker.model.trigger import Schedule
from stoker.store import rows
from stoker.store.schema import schedules
from stoker.store.tx import Tx

_KEPT = ("id", "project_id", "requested_by", "created_at", "seq")
_CHANGING = tuple(column.name for column in schedules.c if column.name not in _KEPT)

_ADD = sa.insert(schedules)
_GET = sa.select(schedules).where(schedules.c.id == sa.bindparam("id"))
_LOCKED = _GET.with_for_update()
_LIST = sa.select(schedules).where(schedules.c.project_id == sa.bindparam("project")).order_by(schedules.c.seq)
_NAMED = sa.select(schedules.c.id).where(
    schedules.c.project_id == sa.bindparam("project"), schedules.c.name == sa.bindparam("named")
)
_SAVE = (
    sa.update(schedules)
    .where(schedules.c.id == sa.bindparam("id_"))
    .values({name: sa.bindparam(f"new_{name}") for name in _CHANGING})
)
_USING_CONFIG = sa.select(schedules).where(schedules.c.config_id == sa.bindparam("config")).limit(1)
_DELETE = sa.delete(schedules).where(schedules.c.id == sa.bindparam("id_"))


def add(tx: Tx, new: Schedule) -> None:
    """Insert a schedule. Raises Conflict if another schedule of the project has its name."""
    _refuse_twin(tx, new)
    try:
        tx.run(_ADD, {"id": new.id, "project_id": new.project_id, **_columns(tx, new)})
    except sa.exc.IntegrityError:  # another transaction inserted the name after the check
        raise _name_conflict(new) from None


def find(tx: Tx, id: str, *, for_update: bool = False) -> Schedule | None:
    """Return the schedule with this id, of any project, or None; ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _GET, {"id": id}).first()
    return None if row is None else _schedule(tx, row)


def get(tx: Tx, id: str, project_id: str, *, for_update: bool = False) -> Schedule:
    """Return the project's schedule; ``for_update`` locks its row. Raises EntityNotFound."""
    found = find(tx, id, for_update=for_update)
    if found is None or found.project_id != project_id:
        raise EntityNotFound.of("Software schedule", id)
    return found


def list_all(tx: Tx, project_id: str) -> list[Schedule]:
    """Return the project's schedules, oldest first."""
    return [_schedule(tx, row) for row in tx.run(_LIST, {"project": project_id})]


def using_config(tx: Tx, config_id: str) -> Schedule | None:
    """Return a schedule that runs this config, or None."""
    row = tx.run(_USING_CONFIG, {"config": config_id}).first()
    return None if row is None else _schedule(tx, row)


def save(tx: Tx, changed: Schedule) -> None:
    """Write the changeable columns of a schedule. Raises Conflict if another schedule of the project has its name."""
    _refuse_twin(tx, changed)
    columns = _columns(tx, changed)
    try:
        tx.run(_SAVE, {"id_": changed.id, **{f"new_{name}": columns[name] for name in _CHANGING}})
    except sa.exc.IntegrityError:
        raise _name_conflict(changed) from None


def delete(tx: Tx, id: str) -> None:
    """Delete the schedule."""
    tx.run(_DELETE, {"id_": id})


def _refuse_twin(tx: Tx, schedule: Schedule) -> None:
    twin = tx.run(_NAMED, {"project": schedule.project_id, "named": schedule.name}).scalar()
    if twin not in (None, schedule.id):
        raise _name_conflict(schedule)


def _name_conflict(schedule: Schedule) -> Conflict:
    return Conflict(f"A schedule named {schedule.name!r} exists already: change that one, or choose another name.")


def _columns(tx: Tx, schedule: Schedule) -> dict[str, Any]:
    if isinstance(values := schedule.body.get("input_values"), Mapping):
        tx.secrets.learn(values.get(name) for name in schedule.secret)
    return {
        "name": schedule.name,
        "body": tx.secrets.dump({"trigger": schedule.body, "secret": schedule.secret}),
        "config_id": schedule.body.get("config_id"),
        "cron": schedule.cron,
        "at": rows.to_micros_optional(schedule.at),
        "timezone": schedule.timezone,
        "require_window": schedule.require_window,
        "misfire_policy": schedule.misfire_policy,
        "enabled": schedule.enabled,
        "requested_by": schedule.requested_by,
        "next_at": rows.to_micros_optional(schedule.next_at),
        "last_at": rows.to_micros_optional(schedule.last_at),
        "last_trigger_id": schedule.last_trigger_id,
        "last_error": tx.secrets.redact_text(schedule.last_error),
        "run_count": schedule.run_count,
        "missed_count": schedule.missed_count,
        "created_at": rows.to_micros(schedule.created_at),
    }


def _schedule(tx: Tx, row: Any) -> Schedule:
    kept = tx.secrets.load(row.body)
    return Schedule(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        body=kept["trigger"],
        secret=tuple(kept["secret"]),
        cron=row.cron,
        at=rows.from_micros_optional(row.at),
        timezone=row.timezone,
        require_window=bool(row.require_window),
        misfire_policy=row.misfire_policy,
        enabled=bool(row.enabled),
        requested_by=row.requested_by,
        next_at=rows.from_micros_optional(row.next_at),
        last_at=rows.from_micros_optional(row.last_at),
        last_trigger_id=row.last_trigger_id,
        last_error=row.last_error,
        run_count=row.run_count,
        missed_count=row.missed_count,
        created_at=rows.from_micros(row.created_at),
    )
