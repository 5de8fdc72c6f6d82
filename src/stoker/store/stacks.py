"""Queries for stacks. The large columns (template, files, environment) are read only on request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, TypeVar

import msgspec
import sqlalchemy as sa

from stoker.model.errors import StackExists
from stoker.model.stack import Source, Stack
from stoker.store import rows, statements
from stoker.store.repository import Repository, require
from stoker.store.schema import events, snapshots, stacks
from stoker.store.tx import Tx

T = TypeVar("T")
STACKS = Repository(
    Stack,
    stacks,
    fixed=(
        *("id", "name", "project_id", "username", "user_project_id", "created_at"),
        *("root_id", "parent_id", "parent_resource_id", "parent_resource", "depth"),
    ),
    unmapped=("source", "previous"),
)
_ROOT = sa.select(stacks.c.root_id).where(stacks.c.id == sa.bindparam("id")).scalar_subquery()
#: Transactions lock the root of the tree, so that those of parent and child never wait for each other.
_LOCKED = STACKS.select(stacks.c.id == _ROOT).with_for_update()
_CHILDREN = STACKS.by("parent_id").where(stacks.c.deleted_at.is_(None))
_TREE = STACKS.select(stacks.c.root_id == _ROOT, stacks.c.deleted_at.is_(None))
_TREES = STACKS.select(stacks.c.root_id.in_(sa.bindparam("ids", expanding=True)), stacks.c.deleted_at.is_(None))
_NAMED = STACKS.by("project_id", "name").where(stacks.c.deleted_at.is_(None))
_SOURCE = sa.select(stacks.c.source).where(*statements.equal(stacks, "id"))
_PREVIOUS = sa.select(stacks.c.previous).where(*statements.equal(stacks, "id"))
_SET_SOURCE = statements.update(stacks, "source")
_FORGET_PREVIOUS = sa.update(stacks).where(stacks.c.id == sa.bindparam("key_id")).values(previous=None)
_KEEP = sa.update(stacks).where(stacks.c.id == sa.bindparam("key_id")).values(previous=stacks.c.source)
_GONE = (
    sa.select(stacks.c.id)
    .where(stacks.c.deleted_at < sa.bindparam("before"))
    .order_by(stacks.c.deleted_at)
    .limit(sa.bindparam("most"))
)
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
_COUNT = statements.count(stacks, "project_id").where(stacks.c.deleted_at.is_(None), stacks.c.parent_id.is_(None))


def add(tx: Tx, new: Stack, source: Source) -> None:
    """Insert a stack. Raises StackExists if another stack of the project has its name."""
    if find_by_name(tx, new.name, new.project_id) is not None:
        raise StackExists(f"The Stack ({new.name}) already exists.")
    try:
        STACKS.add(tx, new, encrypt=_hidden_columns(tx, new), source=_dump_source(tx, source), previous=None)
    except sa.exc.IntegrityError:  # another transaction inserted the name after the check
        raise StackExists(f"The Stack ({new.name}) already exists.") from None


def find(tx: Tx, id: str, *, for_update: bool = False) -> Stack | None:
    """Return the stack with this id, also a deleted one, or None. ``for_update`` locks the root of its tree."""
    if tx.prefetched is not None and ("found", id) in tx.prefetched:
        prefetched: Stack = tx.prefetched["found", id]
        return prefetched
    if not for_update:
        return STACKS.find(tx, id)
    root = STACKS.first(tx, _LOCKED, {"id": id})
    # A nested stack is read after the root is locked, so that its row is current.
    return root if root is None or root.id == id else STACKS.find(tx, id)


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Stack:
    """
    Return the stack; ``for_update`` locks the root of its tree.

    Raises EntityNotFound if it does not exist, or belongs to another project than ``project_id``.
    """
    return require(find(tx, id, for_update=for_update), "Stack", id, project_id)


def find_by_name(tx: Tx, name: str, project_id: str) -> Stack | None:
    """Return the project's stack with this name, or None. Deleted stacks are excluded."""
    return STACKS.first(tx, _NAMED, {"name": name, "project_id": project_id})


def save(tx: Tx, changed: Stack) -> None:
    """Write the changeable columns of a stack."""
    STACKS.save(tx, changed, encrypt=_hidden_columns(tx, changed))


def source(tx: Tx, id: str) -> Source:
    """Return the source that is being applied, or was applied last."""
    return _load_source(tx, tx.scalar(_SOURCE, {"id": id}))


def derive_from_source(tx: Tx, id: str, derive: Callable[[Source], T]) -> T:
    """
    Return ``derive(source)`` of a stack's source. A transaction evaluates each function once, until the source changes.

    The result must contain no secrets: the transaction may not know them any more.
    """
    derived = tx.notes.setdefault(_note(id), {})
    if derive not in derived:
        derived[derive] = derive(source(tx, id))
    result: T = derived[derive]
    return result


def _note(id: str) -> str:
    return f"source of stack {id}"


def previous(tx: Tx, id: str) -> Source | None:
    """Return the source that a rollback restores, the last one applied without failure, or None."""
    text = tx.scalar(_PREVIOUS, {"id": id})
    return None if text is None else _load_source(tx, text)


def set_source(tx: Tx, id: str, new: Source) -> None:
    """Replace the source of a stack."""
    tx.notes.pop(_note(id), None)
    tx.execute_fast(_SET_SOURCE, {"key_id": id, "source": _dump_source(tx, new)})


def keep_source(tx: Tx, id: str) -> None:
    """Make the current source the one that a rollback restores."""
    tx.execute_fast(_KEEP, {"key_id": id})


def children(tx: Tx, id: str) -> list[Stack]:
    """Return the nested stacks that resources of this stack represent."""
    if tx.prefetched is not None and ("children", id) in tx.prefetched:
        return list(tx.prefetched["children", id])
    return STACKS.all(tx, _CHILDREN, {"parent_id": id})


def prefetch(tx: Tx, roots: Collection[str]) -> list[Stack]:
    """
    Load the stacks of these trees at once; ``roots`` are the ids of their root stacks.

    In a read transaction, ``find`` and ``children`` return them from memory afterwards.
    """
    loaded = STACKS.several(tx, _TREES, roots)
    if tx.prefetched is not None:
        tx.prefetched |= {("found", stack.id): stack for stack in loaded}
        tx.prefetched |= {("children", stack.id): [] for stack in loaded}
        for stack in loaded:
            if stack.parent_id is not None:
                tx.prefetched.setdefault(("children", stack.parent_id), []).append(stack)
    return loaded


def forget_previous_source(tx: Tx, id: str) -> None:
    """Delete the source of the last completed operation, because the stack is deleted and no operation follows."""
    tx.run(_FORGET_PREVIOUS, {"key_id": id})


def tree(tx: Tx, id: str) -> list[Stack]:
    """Return the stack and all stacks nested in it, parents first. Deleted stacks are excluded."""
    members = STACKS.all(tx, _TREE, {"id": id})
    below = [stack for stack in members if stack.id == id]
    for parent in below:  # the list grows during the iteration
        below += [stack for stack in members if stack.parent_id == parent.id]
    return below


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's stacks, without nested and deleted ones."""
    return int(tx.scalar(_COUNT, {"project_id": project_id}))


def purge(tx: Tx, before: datetime, most: int) -> int:
    """
    Delete events and snapshots of stacks that were deleted before this time; return the number of deleted rows.

    Deletes at most ``most`` rows of each table, and the stacks themselves when none of these rows remain.
    """
    ids = [row[0] for row in tx.fetch_all(_GONE, {"before": rows.to_micros(before), "most": most})]
    if not ids:
        return 0
    parts = sum(tx.run(statement, {"ids": ids, "most": most}).rowcount for statement in _PURGE_PARTS)
    return parts or tx.run(_PURGE, {"ids": ids}).rowcount


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


def _hidden_columns(tx: Tx, stack: Stack) -> tuple[str, ...]:
    """Return the columns that are always encrypted, after the transaction has learned the stack's hidden parameters."""
    return ("parameters",) if learn_hidden(tx, stack) else ()
