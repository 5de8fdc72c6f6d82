"""Queries for triggers and schedules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from stoker.model.config import Content
from stoker.model.errors import Conflict, EntityNotFound
from stoker.model.trigger import Schedule, Target, Trigger
from stoker.store import rows, targets
from stoker.store.connection import UniqueViolation
from stoker.store.notifier import project_topic, trigger_topic
from stoker.store.query import column, execute, scalar
from stoker.store.repository import Repository, require
from stoker.store.tx import Tx

#: All columns except for the config, which is large.
_TRIGGERS = Repository(
    Trigger,
    "triggers",
    fixed=(
        *("project_id", "name", "action", "source", "stack_id", "input_values"),
        *("requested_by", "schedule_id", "total", "created_at"),
    ),
)
_find_content: Callable[[Tx, str], str] = scalar("SELECT config FROM triggers WHERE id = :id")
#: Return the stack that contains the source of a trigger, or None.
find_stack_id: Callable[[Tx, str], str | None] = scalar("SELECT stack_id FROM triggers WHERE id = :id")
_find_seq: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM triggers WHERE id = :id AND project_id = :project_id"
)
_ENDED_SINCE = "(CAST(:ended_since AS bigint) IS NULL OR ended_at >= :ended_since)"
_PAGE = _TRIGGERS.select(
    "project_id = :project_id AND seq < :before AND (CAST(:status AS text) IS NULL OR status = :status)"
    f" AND (CAST(:stack_id AS text) IS NULL OR stack_id = :stack_id) AND {_ENDED_SINCE}"
    " AND (CAST(:contains AS text) IS NULL OR @position(lower(name), :contains) > 0)"
    " AND (CAST(:requested_by AS text) IS NULL OR requested_by = :requested_by)"
    " ORDER BY seq DESC LIMIT :limit"
)
#: Return the number of triggers that ``page`` returns for a status, and those that ended since a time, or None.
count: Callable[[Tx, str, str, datetime | None], int] = scalar(
    f"SELECT count(*) FROM triggers WHERE project_id = :project_id AND status = :status AND {_ENDED_SINCE}"
)
#: Return the id of a trigger of any project that ended before a time, or None.
find_ended: Callable[[Tx, datetime], str | None] = scalar(
    "SELECT id FROM triggers WHERE ended_at < :before AND status != 'IN_PROGRESS' ORDER BY seq LIMIT 1"
)
#: Return the ids of a schedule's triggers that have not ended, in the order of their locks.
list_running: Callable[[Tx, str, str], list[str]] = column(
    "SELECT id FROM triggers WHERE project_id = :project_id AND schedule_id = :schedule AND status = 'IN_PROGRESS'"
    " ORDER BY id"
)
#: Return the ids of a schedule's ended triggers, except for a number of the newest ones.
oldest_beyond: Callable[[Tx, str, str, int], list[str]] = column(
    "SELECT id FROM triggers WHERE project_id = :project_id AND schedule_id = :schedule AND status != 'IN_PROGRESS'"
    f" ORDER BY seq DESC LIMIT {rows.UNLIMITED} OFFSET :kept"
)


def add(tx: Tx, new: Trigger, content: Content, servers: Sequence[Target]) -> None:
    """Insert a trigger with its content and targets. The transaction learns the values of its secret inputs."""
    secret = new.options.secret
    tx.secrets.learn(new.input_values.get(name) for name in secret)
    tx.secrets.learn(target.input_values.get(name) for target in servers for name in secret)
    tx.secrets.learn(entry.get("default") for entry in content.inputs if entry["name"] in secret)
    _TRIGGERS.add(tx, new, config=tx.secrets.dump(content))
    targets.add(tx, servers)
    _notify(tx, new)


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Trigger:
    """
    Return the trigger. ``for_update`` locks it, which protects its targets and deployments too.

    Raises EntityNotFound if it does not exist, or belongs to another project than ``project_id``.
    """
    return require(find(tx, id, for_update=for_update), "Software trigger", id, project_id)


def find(tx: Tx, id: str, *, for_update: bool = False) -> Trigger | None:
    """Return the trigger with this id, of any project, or None; ``for_update`` locks it."""
    if for_update:
        tx.advisory_lock(_lock_name(id))
    return _TRIGGERS.find(tx, id, for_update=for_update)


def share_locks(tx: Tx, ids: Collection[str]) -> None:
    """
    Lock triggers for transactions that end some of their runs: only those with ``for_update`` wait for each other.

    Call it before the deployments are locked, and ``find_to_count`` afterwards.
    """
    for id in sorted(ids):
        tx.advisory_lock(_lock_name(id), is_shared=True)


def find_to_count(tx: Tx, id: str) -> Trigger | None:
    """
    Return a trigger whose lock is shared, and lock its row: other transactions wait before they count their targets.

    Take these locks in the order of the ids, and end the transaction soon afterwards.
    """
    return _TRIGGERS.find(tx, id, for_update=True)


def _lock_name(id: str) -> str:
    return f"trigger {id}"


def content(tx: Tx, id: str) -> Content:
    """Return the config that the trigger runs."""
    return msgspec.json.decode(tx.secrets.decrypt(_find_content(tx, id)), type=Content)


def save(tx: Tx, changed: Trigger) -> None:
    """Write the changeable columns of a trigger, and notify its topics."""
    _TRIGGERS.save(tx, changed)
    _notify(tx, changed)


def delete(tx: Tx, old: Trigger) -> None:
    """Delete the trigger and its targets, and notify its topics."""
    targets.delete(tx, old.id)
    _TRIGGERS.delete(tx, old.id)
    _notify(tx, old)


def _notify(tx: Tx, trigger: Trigger) -> None:
    tx.notify(trigger_topic(trigger.id))
    tx.notify(project_topic(trigger.project_id, "triggers"))


def page(
    tx: Tx,
    project_id: str,
    *,
    limit: int | None = None,
    marker: str | None = None,
    status: str | None = None,
    stack_id: str | None = None,
    ended_since: datetime | None = None,
    contains: str | None = None,
    requested_by: str | None = None,
) -> list[Trigger]:
    """
    Return at most ``limit`` triggers, newest first, that follow the trigger with the id ``marker``.

    The other arguments restrict the triggers; ``contains`` is a part of the name, in any case. Raises EntityNotFound if
    the project has no trigger ``marker``.
    """
    before = 2**62
    if marker is not None:
        seq = _find_seq(tx, marker, project_id)
        if seq is None:
            raise EntityNotFound.of("Software trigger", marker)
        before = seq
    values = {
        "project_id": project_id,
        "before": before,
        "limit": rows.UNLIMITED if limit is None else limit,
        "status": status,
        "stack_id": stack_id,
        "ended_since": ended_since and rows.to_micros(ended_since),
        "contains": contains and contains.lower(),
        "requested_by": requested_by,
    }
    return _TRIGGERS.all(tx, _PAGE, values)


_SCHEDULES = Repository(
    Schedule, "schedules", fixed=("project_id", "requested_by", "created_at"), noun="Software schedule"
)
find_schedule, get_schedule, delete_schedule = _SCHEDULES.find, _SCHEDULES.get, _SCHEDULES.delete
#: Return a project's schedules, oldest first, whose next time is earlier than a time; None: all of them.
list_schedules: Callable[[Tx, str, datetime | None], list[Schedule]] = _SCHEDULES.lister(
    "project_id = :project_id AND (CAST(:next_before AS bigint) IS NULL OR next_at < :next_before) ORDER BY seq"
)
_find_schedule_id: Callable[[Tx, str, str], str | None] = scalar(
    "SELECT id FROM schedules WHERE project_id = :project_id AND name = :name"
)
#: Return a schedule that runs a config, or None.
schedule_using: Callable[[Tx, str], Schedule | None] = _SCHEDULES.finder("config_id = :config_id LIMIT 1")
_set_config: Callable[[Tx, str | None, str], None] = execute(
    "UPDATE schedules SET config_id = :config_id WHERE id = :id"
)


def add_schedule(tx: Tx, new: Schedule) -> None:
    """Insert a schedule. Raises Conflict if another schedule of the project has its name."""
    _learn_secrets(tx, new)
    if not _SCHEDULES.add(tx, new, unless_exists=True, config_id=new.body.get("config_id")):
        raise _name_conflict(new)


def save_schedule(tx: Tx, changed: Schedule) -> None:
    """Write the changeable columns of a schedule. Raises Conflict if another schedule of the project has its name."""
    if _find_schedule_id(tx, changed.project_id, changed.name) not in (None, changed.id):
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
