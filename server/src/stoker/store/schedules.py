"""Queries for schedules."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.errors import Conflict
from stoker.model.trigger import Schedule
from stoker.store.faults import UniqueViolation
from stoker.store.repository import Repository, require
from stoker.store.sql import sql, update
from stoker.store.tx import Tx

_SCHEDULES = Repository(Schedule, "schedules", fixed=("project_id", "requested_by", "created_at"))
_LIST = _SCHEDULES.select("project_id = :project_id ORDER BY seq")
_NAMED = sql("SELECT id FROM schedules WHERE project_id = :project_id AND name = :name")
_OF_CONFIG = _SCHEDULES.select("config_id = :config_id LIMIT 1")
_SET_CONFIG = update("schedules", "config_id")


def add(tx: Tx, new: Schedule) -> None:
    """Insert a schedule. Raises Conflict if another schedule of the project has its name."""
    _learn_secrets(tx, new)
    if not _SCHEDULES.add(tx, new, unless_exists=True, config_id=new.body.get("config_id")):
        raise _name_conflict(new)


def find(tx: Tx, id: str, *, for_update: bool = False) -> Schedule | None:
    """Return the schedule with this id, of any project, or None; ``for_update`` locks its row."""
    return _SCHEDULES.find(tx, id, for_update=for_update)


def get(tx: Tx, id: str, project_id: str, *, for_update: bool = False) -> Schedule:
    """Return the project's schedule; ``for_update`` locks its row. Raises EntityNotFound."""
    return require(find(tx, id, for_update=for_update), "Software schedule", id, project_id)


def list_all(tx: Tx, project_id: str) -> list[Schedule]:
    """Return the project's schedules, oldest first."""
    return _SCHEDULES.all(tx, _LIST, {"project_id": project_id})


def using_config(tx: Tx, config_id: str) -> Schedule | None:
    """Return a schedule that runs this config, or None."""
    return _SCHEDULES.first(tx, _OF_CONFIG, {"config_id": config_id})


def save(tx: Tx, changed: Schedule) -> None:
    """Write the changeable columns of a schedule. Raises Conflict if another schedule of the project has its name."""
    if tx.scalar(_NAMED, {"project_id": changed.project_id, "name": changed.name}) not in (None, changed.id):
        raise _name_conflict(changed)
    _learn_secrets(tx, changed)
    try:
        _SCHEDULES.save(tx, changed)
    except UniqueViolation:  # another transaction inserted the name after the check
        raise _name_conflict(changed) from None
    tx.execute_fast(_SET_CONFIG, {"key_id": changed.id, "config_id": changed.body.get("config_id")})


def delete(tx: Tx, id: str) -> None:
    """Delete the schedule."""
    _SCHEDULES.delete(tx, id)


def _name_conflict(schedule: Schedule) -> Conflict:
    return Conflict(f"A schedule named {schedule.name!r} exists already: change that one, or choose another name.")


def _learn_secrets(tx: Tx, schedule: Schedule) -> None:
    if isinstance(values := schedule.body.get("input_values"), Mapping):
        tx.secrets.learn(values.get(name) for name in schedule.secret)
