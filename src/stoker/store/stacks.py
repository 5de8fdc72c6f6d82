"""Stacks in SQL. The heavy columns (template, files, environment) are read only when asked for."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec
import sqlalchemy as sa

from stoker.model.errors import EntityNotFound, StackExists
from stoker.model.stack import Phase, Source, Stack
from stoker.model.status import Action, Status
from stoker.store import rows
from stoker.store.schema import events, snapshots, stacks
from stoker.store.tx import Tx

_HEAVY = frozenset(("source", "previous"))
#: All columns but the heavy ones.
LIGHT = [column for column in stacks.c if column.name not in _HEAVY]
_ADD = sa.insert(stacks)
_GET = sa.select(*LIGHT).where(stacks.c.id == sa.bindparam("id"))
#: Transactions hold the top of the tree, so that those of parent and child never wait for one another.
_HOLD = (
    sa.select(*LIGHT)
    .where(stacks.c.id == sa.select(stacks.c.root_id).where(stacks.c.id == sa.bindparam("id")).scalar_subquery())
    .with_for_update()
)
_CHILDREN = sa.select(*LIGHT).where(stacks.c.parent_id == sa.bindparam("id"), stacks.c.deleted_at.is_(None))
_TREE = sa.select(*LIGHT).where(
    stacks.c.root_id == sa.select(stacks.c.root_id).where(stacks.c.id == sa.bindparam("id")).scalar_subquery()
)
_TREES = sa.select(*LIGHT).where(
    stacks.c.root_id.in_(sa.bindparam("ids", expanding=True)), stacks.c.deleted_at.is_(None)
)
_NAMED = sa.select(*LIGHT).where(
    stacks.c.project_id == sa.bindparam("project"), stacks.c.name == sa.bindparam("name"), stacks.c.deleted_at.is_(None)
)
_CHANGING = (
    "action",
    "status",
    "reason",
    "description",
    "version",
    "parameters",
    "outputs",
    "tags",
    "event_sinks",
    "timeout_mins",
    "disable_rollback",
    "updated_at",
    "deleted_at",
    "traversal",
    "phase",
    "remaining",
    "failure",
)
_SAVE = (
    sa.update(stacks).where(stacks.c.id == sa.bindparam("id_")).values({name: sa.bindparam(name) for name in _CHANGING})
)
_SOURCE = sa.select(stacks.c.source).where(stacks.c.id == sa.bindparam("id"))
_PREVIOUS = sa.select(stacks.c.previous).where(stacks.c.id == sa.bindparam("id"))
_SET_SOURCE = sa.update(stacks).where(stacks.c.id == sa.bindparam("id_")).values(source=sa.bindparam("source"))
_KEEP = sa.update(stacks).where(stacks.c.id == sa.bindparam("id_")).values(previous=stacks.c.source)
_GONE = sa.select(stacks.c.id).where(stacks.c.deleted_at < sa.bindparam("before"))
_PURGE = (
    sa.delete(events).where(events.c.stack_id == sa.bindparam("id_")),
    sa.delete(snapshots).where(snapshots.c.stack_id == sa.bindparam("id_")),
    sa.delete(stacks).where(stacks.c.id == sa.bindparam("id_")),
)
_COUNT = sa.select(sa.func.count()).where(
    stacks.c.project_id == sa.bindparam("project"), stacks.c.deleted_at.is_(None), stacks.c.parent_id.is_(None)
)


def add(tx: Tx, new: Stack, source: Source) -> None:
    """Raises StackExists when a live stack of the project has that name."""
    if named(tx, new.name, new.project_id) is not None:
        raise StackExists(f"The Stack ({new.name}) already exists.")
    try:
        tx.run(_ADD, {**columns(new), "source": rows.dump(source), "previous": None})
    except sa.exc.IntegrityError:  # somebody else was quicker, between the look and the insert
        raise StackExists(f"The Stack ({new.name}) already exists.") from None


def find(tx: Tx, id: str, *, hold: bool = False) -> Stack | None:
    if tx.seen is not None and ("found", id) in tx.seen:
        known: Stack = tx.seen["found", id]
        return known
    row = tx.run(_HOLD if hold else _GET, {"id": id}).first()
    if row is not None and row.id != id:
        row = tx.run(_GET, {"id": id}).first()  # read after its root is held, so as it is now
    return None if row is None else loaded(row)


def get(tx: Tx, id: str, project_id: str | None = None, *, hold: bool = False) -> Stack:
    found = find(tx, id, hold=hold)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Stack", id)
    return found


def named(tx: Tx, name: str, project_id: str) -> Stack | None:
    """The live stack of that name."""
    row = tx.run(_NAMED, {"name": name, "project": project_id}).first()
    return None if row is None else loaded(row)


def save(tx: Tx, changed: Stack) -> None:
    values = columns(changed)
    tx.run(_SAVE, {"id_": changed.id, **{name: values[name] for name in _CHANGING}})


def source(tx: Tx, id: str) -> Source:
    """What is being or was applied last."""
    return msgspec.json.decode(tx.run(_SOURCE, {"id": id}).scalar_one(), type=Source)


def previous(tx: Tx, id: str) -> Source | None:
    """What to go back to: the last source that was applied without failure."""
    text = tx.run(_PREVIOUS, {"id": id}).scalar_one()
    return None if text is None else msgspec.json.decode(text, type=Source)


def set_source(tx: Tx, id: str, new: Source) -> None:
    tx.run(_SET_SOURCE, {"id_": id, "source": rows.dump(new)})


def keep_source(tx: Tx, id: str) -> None:
    """From now on a rollback leads to the present source."""
    tx.run(_KEEP, {"id_": id})


def children(tx: Tx, id: str) -> list[Stack]:
    """The live stacks that resources of this one are."""
    if tx.seen is not None and ("children", id) in tx.seen:
        return list(tx.seen["children", id])
    return [loaded(row) for row in tx.run(_CHILDREN, {"id": id})]


def look_ahead(tx: Tx, roots: Collection[str]) -> list[Stack]:
    """The live stacks of these trees; in a reading transaction ``find`` and ``children`` have them from now on."""
    found = [loaded(row) for ids in rows.portions(roots) for row in tx.run(_TREES, {"ids": ids})]
    if tx.seen is not None:
        tx.seen |= {("found", each.id): each for each in found}
        tx.seen |= {("children", each.id): [] for each in found}
        for each in found:
            if each.parent_id is not None:
                tx.seen.setdefault(("children", each.parent_id), []).append(each)
    return found


def tree(tx: Tx, id: str) -> list[Stack]:
    """The live stack and all that are nested in it, parents first."""
    members = {row.id: loaded(row) for row in tx.run(_TREE, {"id": id}) if row.deleted_at is None}
    found = [members[id]] if id in members else []
    for each in found:  # grows while it is walked
        found += [other for other in members.values() if other.parent_id == each.id]
    return found


def count(tx: Tx, project_id: str) -> int:
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def purge(tx: Tx, before: datetime) -> int:
    """Forget stacks that were deleted before then, with their events and snapshots; returns how many."""
    gone = [row.id for row in tx.run(_GONE, {"before": rows.stamp(before)})]
    for id in gone:
        for statement in _PURGE:
            tx.run(statement, {"id_": id})
    return len(gone)


def columns(stack: Stack) -> dict[str, Any]:
    """As they are stored, without the heavy ones."""
    return {
        "id": stack.id,
        "name": stack.name,
        "project_id": stack.project_id,
        "username": stack.username,
        "user_project_id": stack.user_project_id,
        "action": stack.action.value,
        "status": stack.status.value,
        "reason": stack.reason,
        "description": stack.description,
        "version": stack.version,
        "parameters": rows.dump(stack.parameters),
        "outputs": rows.dump(stack.outputs),
        "tags": rows.dump(stack.tags),
        "event_sinks": rows.dump(stack.event_sinks) if stack.event_sinks else None,
        "timeout_mins": stack.timeout_mins,
        "disable_rollback": stack.disable_rollback,
        "created_at": rows.stamp(stack.created_at),
        "updated_at": rows.stamp_optional(stack.updated_at),
        "deleted_at": rows.stamp_optional(stack.deleted_at),
        "traversal": stack.traversal,
        "phase": stack.phase.value,
        "remaining": stack.remaining,
        "failure": stack.failure,
        "root_id": stack.root_id,
        "parent_id": stack.parent_id,
        "parent_resource_id": stack.parent_resource_id,
        "parent_resource": stack.parent_resource,
        "depth": stack.depth,
    }


def loaded(row: Any) -> Stack:
    """From a row with the light columns."""
    return Stack(
        id=row.id,
        name=row.name,
        project_id=row.project_id,
        username=row.username,
        user_project_id=row.user_project_id,
        action=Action(row.action),
        status=Status(row.status),
        reason=row.reason,
        description=row.description,
        version=row.version,
        parameters=rows.load(row.parameters),
        outputs=rows.load(row.outputs),
        tags=tuple(rows.load(row.tags)),
        event_sinks=tuple(rows.load(row.event_sinks)) if row.event_sinks else (),
        timeout_mins=row.timeout_mins,
        disable_rollback=row.disable_rollback,
        created_at=rows.moment(row.created_at),
        updated_at=rows.moment_optional(row.updated_at),
        deleted_at=rows.moment_optional(row.deleted_at),
        traversal=row.traversal,
        phase=Phase(row.phase),
        remaining=row.remaining,
        failure=row.failure,
        root_id=row.root_id,
        parent_id=row.parent_id,
        parent_resource_id=row.parent_resource_id,
        parent_resource=row.parent_resource,
        depth=row.depth,
    )
