"""Queries for stacks. The large columns (template, files, environment) are read only on request."""

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
#: All columns except the large ones.
LIGHT = [column for column in stacks.c if column.name not in _HEAVY]
_ADD = sa.insert(stacks)
_GET = sa.select(*LIGHT).where(stacks.c.id == sa.bindparam("id"))
#: Transactions lock the root of the tree, so that those of parent and child never wait for each other.
_LOCKED = (
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
_GONE = sa.select(stacks.c.id).where(stacks.c.deleted_at < sa.bindparam("before")).limit(sa.bindparam("most"))
_COUNT_GONE = sa.select(sa.func.count()).where(stacks.c.deleted_at < sa.bindparam("before"))
_OF_GONE: sa.BindParameter[Any] = sa.bindparam("ids", expanding=True)
_PURGE_PARTS = (
    sa.delete(events).where(
        events.c.seq.in_(sa.select(events.c.seq).where(events.c.stack_id.in_(_OF_GONE)).limit(sa.bindparam("most")))
    ),
    sa.delete(snapshots).where(
        snapshots.c.id.in_(
            sa.select(snapshots.c.id).where(snapshots.c.stack_id.in_(_OF_GONE)).limit(sa.bindparam("most"))
        )
    ),
)
_PURGE = sa.delete(stacks).where(stacks.c.id.in_(_OF_GONE))
_COUNT = sa.select(sa.func.count()).where(
    stacks.c.project_id == sa.bindparam("project"), stacks.c.deleted_at.is_(None), stacks.c.parent_id.is_(None)
)


def add(tx: Tx, new: Stack, source: Source) -> None:
    """Insert a stack. Raises StackExists if another stack of the project has its name."""
    if find_by_name(tx, new.name, new.project_id) is not None:
        raise StackExists(f"The Stack ({new.name}) already exists.")
    try:
        tx.run(_ADD, {**columns(tx, new), "source": _dump_source(tx, source), "previous": None})
    except sa.exc.IntegrityError:  # another transaction inserted the name after the check
        raise StackExists(f"The Stack ({new.name}) already exists.") from None


def find(tx: Tx, id: str, *, for_update: bool = False) -> Stack | None:
    """Return the stack with this id, also a deleted one, or None. ``for_update`` locks the root of its tree."""
    if tx.prefetched is not None and ("found", id) in tx.prefetched:
        known: Stack = tx.prefetched["found", id]
        return known
    row = tx.run(_LOCKED if for_update else _GET, {"id": id}).first()
    if row is not None and row.id != id:
        row = tx.run(_GET, {"id": id}).first()  # read again after the root is locked, so that the row is current
    return None if row is None else from_row(tx, row)


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Stack:
    """
    Return the stack; ``for_update`` locks the root of its tree.

    Raises EntityNotFound if it does not exist, or belongs to another project than ``project_id``.
    """
    found = find(tx, id, for_update=for_update)
    if found is None or project_id not in (None, found.project_id):
        raise EntityNotFound.of("Stack", id)
    return found


def find_by_name(tx: Tx, name: str, project_id: str) -> Stack | None:
    """Return the project's stack with this name, or None. Deleted stacks are excluded."""
    row = tx.run(_NAMED, {"name": name, "project": project_id}).first()
    return None if row is None else from_row(tx, row)


def save(tx: Tx, changed: Stack) -> None:
    """Write the changeable columns of a stack."""
    values = columns(tx, changed)
    tx.run(_SAVE, {"id_": changed.id, **{name: values[name] for name in _CHANGING}})


def source(tx: Tx, id: str) -> Source:
    """Return the source that is being applied, or was applied last."""
    return _load_source(tx, tx.run(_SOURCE, {"id": id}).scalar_one())


def previous(tx: Tx, id: str) -> Source | None:
    """Return the source that a rollback restores, the last one applied without failure, or None."""
    text = tx.run(_PREVIOUS, {"id": id}).scalar_one()
    return None if text is None else _load_source(tx, text)


def set_source(tx: Tx, id: str, new: Source) -> None:
    """Replace the source of a stack."""
    tx.run(_SET_SOURCE, {"id_": id, "source": _dump_source(tx, new)})


def keep_source(tx: Tx, id: str) -> None:
    """Make the current source the one that a rollback restores."""
    tx.run(_KEEP, {"id_": id})


def children(tx: Tx, id: str) -> list[Stack]:
    """Return the nested stacks that resources of this stack represent."""
    if tx.prefetched is not None and ("children", id) in tx.prefetched:
        return list(tx.prefetched["children", id])
    return [from_row(tx, row) for row in tx.run(_CHILDREN, {"id": id})]


def prefetch(tx: Tx, roots: Collection[str]) -> list[Stack]:
    """
    Load the stacks of these trees at once; ``roots`` are the ids of their root stacks.

    In a read transaction, ``find`` and ``children`` return them from memory afterwards.
    """
    found = [from_row(tx, row) for ids in rows.portions(roots) for row in tx.run(_TREES, {"ids": ids})]
    if tx.prefetched is not None:
        tx.prefetched |= {("found", each.id): each for each in found}
        tx.prefetched |= {("children", each.id): [] for each in found}
        for each in found:
            if each.parent_id is not None:
                tx.prefetched.setdefault(("children", each.parent_id), []).append(each)
    return found


def tree(tx: Tx, id: str) -> list[Stack]:
    """Return the stack and all stacks nested in it, parents first. Deleted stacks are excluded."""
    members = {row.id: from_row(tx, row) for row in tx.run(_TREE, {"id": id}) if row.deleted_at is None}
    found = [members[id]] if id in members else []
    for each in found:  # the list grows during the iteration
        found += [other for other in members.values() if other.parent_id == each.id]
    return found


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's stacks, without nested and deleted ones."""
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def count_gone(tx: Tx, before: datetime) -> int:
    """Return the number of stacks deleted before this time."""
    count: int = tx.run(_COUNT_GONE, {"before": rows.to_micros(before)}).scalar_one()
    return count


def purge(tx: Tx, before: datetime, most: int) -> int:
    """
    Delete events and snapshots of stacks that were deleted before this time; return the number of deleted rows.

    Deletes at most ``most`` rows of each table, and the stacks themselves when none of these rows remain.
    """
    gone = [row.id for row in tx.run(_GONE, {"before": rows.to_micros(before), "most": most})]
    if not gone:
        return 0
    parts = sum(tx.run(statement, {"ids": gone, "most": most}).rowcount for statement in _PURGE_PARTS)
    return parts or tx.run(_PURGE, {"ids": gone}).rowcount


def _dump_source(tx: Tx, source: Source) -> str:
    """
    Serialize the source. With ``parameter_defaults`` it is always encrypted: only the nested templates that use these
    defaults declare which of them are hidden.
    """
    return tx.secrets.dump(source, always=bool(source.environment.get("parameter_defaults")))


def _load_source(tx: Tx, column: str) -> Source:
    return msgspec.json.decode(tx.secrets.decrypt(column), type=Source)


def learn_hidden(tx: Tx, stack: Stack) -> bool:
    """Add the values of the stack's hidden parameters to the transaction's secrets. Return whether there are any."""
    hidden = stack.parameters.get("hidden", ())
    tx.secrets.learn(stack.parameters["values"].get(name) for name in hidden)
    return bool(hidden)


def columns(tx: Tx, stack: Stack) -> dict[str, Any]:
    """Return the stack as stored, without the large columns."""
    hidden = learn_hidden(tx, stack)
    return {
        "id": stack.id,
        "name": stack.name,
        "project_id": stack.project_id,
        "username": stack.username,
        "user_project_id": stack.user_project_id,
        "action": stack.action.value,
        "status": stack.status.value,
        "reason": tx.secrets.redact_text(stack.reason),
        "description": stack.description,
        "version": stack.version,
        "parameters": tx.secrets.dump(stack.parameters, always=hidden),
        "outputs": tx.secrets.dump(stack.outputs),
        "tags": rows.dump(stack.tags),
        "event_sinks": rows.dump(stack.event_sinks) if stack.event_sinks else None,
        "timeout_mins": stack.timeout_mins,
        "disable_rollback": stack.disable_rollback,
        "created_at": rows.to_micros(stack.created_at),
        "updated_at": rows.to_micros_optional(stack.updated_at),
        "deleted_at": rows.to_micros_optional(stack.deleted_at),
        "traversal": stack.traversal,
        "phase": stack.phase.value,
        "remaining": stack.remaining,
        "failure": tx.secrets.redact_text(stack.failure),
        "root_id": stack.root_id,
        "parent_id": stack.parent_id,
        "parent_resource_id": stack.parent_resource_id,
        "parent_resource": stack.parent_resource,
        "depth": stack.depth,
    }


def from_row(tx: Tx, row: Any) -> Stack:
    """Return the stack in a row with the small columns."""
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
        parameters=tx.secrets.load(row.parameters),
        outputs=tx.secrets.load(row.outputs),
        tags=tuple(rows.load(row.tags)),
        event_sinks=tuple(rows.load(row.event_sinks)) if row.event_sinks else (),
        timeout_mins=row.timeout_mins,
        disable_rollback=row.disable_rollback,
        created_at=rows.from_micros(row.created_at),
        updated_at=rows.from_micros_optional(row.updated_at),
        deleted_at=rows.from_micros_optional(row.deleted_at),
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
