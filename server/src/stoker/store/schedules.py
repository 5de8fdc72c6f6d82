"""Queries for schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from stoker.model.errors import Conflict
from stoker.model.trigger import Schedule
from stoker.store import rows
from stoker.store.faults import UniqueViolation
from stoker.store.query import execute, scalar
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_SCHEDULES = Repository(
    Schedule, "schedules", fixed=("project_id", "requested_by", "created_at"), noun="Software schedule"
)
find, get, delete = _SCHEDULES.find, _SCHEDULES.get, _SCHEDULES.delete
_LIST = _SCHEDULES.select("project_id = :project_id AND (:any_time OR next_at < :next_before) ORDER BY seq")
_find_id: Callable[[Tx, str, str], str | None] = scalar(
    "SELECT id FROM schedules WHERE project_id = :project_id AND name = :name"
)
#: Return a schedule that runs a config, or None.
using_config: Callable[[Tx, str], Schedule | None] = _SCHEDULES.finder("config_id = :config_id LIMIT 1")
_set_config: Callable[[Tx, str | None, str], None] = execute(
    "UPDATE schedules SET config_id = :config_id WHERE id = :id"
)


def add(tx: Tx, new: Schedule) -> None:
    """Insert a schedule. Raises Conflict if another schedule of the project has its name."""
    _learn_secrets(tx, new)
    if not _SCHEDULES.add(tx, new, unless_exists=True, config_id=new.body.get("config_id")):
        raise _name_conflict(new)


def list_all(tx: Tx, project_id: str, next_before: datetime | None = None) -> list[Schedule]:
    """Return the project's schedules, oldest first; with ``next_before``, those whose next time is earlier."""
    values = {"any_time": next_before is None, "next_before": next_before and rows.to_micros(next_before)}
    return _SCHEDULES.all(tx, _LIST, {"project_id": project_id, **values})


def save(tx: Tx, changed: Schedule) -> None:
    """Write the changeable columns of a schedule. Raises Conflict if another schedule of the project has its name."""
    if _find_id(tx, changed.project_id, changed.name) not in (None, changed.id):
        raise _name_conflict(changed)
    _learn_secrets(tx, changed)
    try:
        _SCHEDULES.save(tx, changed)
    except UniqueViolation:  # another transaction inserted the name after the check
        raise _name_conflict(changed) from None
    _set_config(tx, changed.body.get("config_id"), changed.id)


def _name_conflict(schedule: Schedule) -> Conflict:
    return Conflict(f"A schedule named {schedule.name!r} exists already: change that one, or choose another name.")


def _learn_secrets(tx: Tx, schedule: Schedule) -> None:
    if isinstance(values := schedule.body.get("input_values"), Mapping):
        tx.secrets.learn(values.get(name) for name in schedule.secret)
