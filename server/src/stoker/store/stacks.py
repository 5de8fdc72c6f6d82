"""
Queries for stacks and their snapshots. The large columns of a stack (template, files, environment) are read only on
request.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeVar

import msgspec

from stoker.model.errors import EntityNotFound, StackExists
from stoker.model.stack import Snapshot, Source, Stack, Status
from stoker.store.notifier import project_topic
from stoker.store.query import change, column, execute, scalar
from stoker.store.repository import Repository, require
from stoker.store.tx import Tx

T = TypeVar("T")
STACKS = Repository(
    Stack,
    "stacks",
    fixed=(
        *("id", "name", "project_id", "username", "user_project_id", "created_at"),
        *("root_id", "parent_id", "parent_resource_id", "parent_resource", "depth"),
    ),
)
_ROOT = "(SELECT root_id FROM stacks WHERE id = :id)"
#: Transactions lock the root of the tree, so that those of parent and child never wait for each other.
_LOCKED = STACKS.select(f"id = {_ROOT} @for_update")
_BY_ID = STACKS.select("id = :id")
_ID = STACKS.codec.fields.index("id")
_list_children: Callable[[Tx, str], list[Stack]] = STACKS.lister("parent_id = :parent_id AND deleted_at IS NULL")
#: Return the nested stack that a resource of a stack represents, or None: ``of_resource(tx, stack_id, resource_id)``.
of_resource: Callable[[Tx, str, str], Stack | None] = STACKS.finder(
    "parent_id = :parent_id AND parent_resource_id = :parent_resource_id AND deleted_at IS NULL"
)
_TREE = STACKS.select(f"root_id = {_ROOT} AND deleted_at IS NULL")
#: Return a project's stack with a name, or None. Deleted stacks are excluded.
find_by_name: Callable[[Tx, str, str], Stack | None] = STACKS.finder(
    "name = :name AND project_id = :project_id AND deleted_at IS NULL"
)
_find_source: Callable[[Tx, str], str] = scalar("SELECT source FROM stacks WHERE id = :id")
_find_previous: Callable[[Tx, str], str | None] = scalar("SELECT previous FROM stacks WHERE id = :id")
_set_source: Callable[[Tx, str, str], None] = execute("UPDATE stacks SET source = :source WHERE id = :id")
#: Make the current source of a stack the one that a rollback restores.
keep_source: Callable[[Tx, str], None] = execute("UPDATE stacks SET previous = source WHERE id = :id")
#: Delete the source of the last completed operation, because the stack is deleted and no operation follows.
forget_previous_source: Callable[[Tx, str], None] = execute("UPDATE stacks SET previous = NULL WHERE id = :id")
_list_gone: Callable[[Tx, datetime, int], list[str]] = column(
    "SELECT id FROM stacks WHERE deleted_at < :before ORDER BY deleted_at LIMIT :most"
)
_PURGE_PARTS = [
    change(f"DELETE FROM {table} WHERE {key} IN (SELECT {key} FROM {table} WHERE stack_id @in(ids) LIMIT :most)")
    for table, key in (("events", "seq"), ("snapshots", "id"))
]
_purge: Callable[[Tx, list[str]], int] = change("DELETE FROM stacks WHERE id @in(ids)")
#: Return the number of a project's stacks, without nested and deleted ones.
count: Callable[[Tx, str], int] = scalar(
    "SELECT count(*) FROM stacks WHERE project_id = :project_id AND deleted_at IS NULL AND parent_id IS NULL"
)

#: In ``Tx.cache``: the row of a stack whose tree is locked, and the nested stacks of a stack.
_LOCKED_ROW, _CHILDREN_OF = "stacks locked", "stacks children"


def add(tx: Tx, new: Stack, source: Source) -> None:
    """Insert a stack. Raises StackExists if another stack of the project has its name."""
    encrypted = _hidden_columns(tx, new)  # now the transaction knows the secrets that the source contains
    columns: dict[str, Any] = {"source": _dump_source(tx, source), "previous": None}
    if not STACKS.add(tx, new, unless_exists=True, encrypt=encrypted, **columns):
        raise StackExists(f"The Stack ({new.name}) already exists.")
    tx.notify(project_topic(new.project_id, "stacks"))


def find(tx: Tx, id: str, *, for_update: bool = False) -> Stack | None:
    """Return the stack with this id, also a deleted one, or None. ``for_update`` locks the root of its tree."""
    if not for_update:
        return STACKS.find(tx, id)
    row = tx.cache.get((_LOCKED_ROW, id)) or lock(tx, id)
    return None if row is None else STACKS.decode(row, tx.secrets)


def lock(tx: Tx, id: str) -> Any:
    """Lock the root of the stack's tree. Return the stack's row, which is current until the transaction saves it."""
    row = tx.execute_fast(_LOCKED, {"id": id})
    if row is not None and row[_ID] != id:
        row = tx.execute_fast(_BY_ID, {"id": id})
    if row is not None:
        tx.cache[_LOCKED_ROW, id] = row
    return row


def get(tx: Tx, id: str, project_id: str | None = None, *, for_update: bool = False) -> Stack:
    """
    Return the stack; ``for_update`` locks the root of its tree.

    Raises EntityNotFound if it does not exist, or belongs to another project than ``project_id``.
    """
    return require(find(tx, id, for_update=for_update), "Stack", id, project_id)


def save(tx: Tx, changed: Stack) -> None:
    """Write the changeable columns of a stack, and notify the topic of the project's stacks."""
    tx.cache.pop((_LOCKED_ROW, changed.id), None)
    STACKS.save(tx, changed, encrypt=_hidden_columns(tx, changed))
    if changed.parent_id is None:
        tx.notify(project_topic(changed.project_id, "stacks"))


def source(tx: Tx, id: str) -> Source:
    """Return the source that is being applied, or was applied last."""
    return _load_source(tx, _find_source(tx, id))


def derive_from_source(tx: Tx, id: str, derive: Callable[[Source], T]) -> T:
    """
    Return ``derive(source)`` of a stack's source. A transaction evaluates each function once, until the source changes.
    """
    secrets, derived = tx.notes.get(_note(id), (None, {}))
    if secrets is not tx.secrets:  # the source is decoded again, so that another part of the transaction learns from it
        derived = {}
        tx.notes[_note(id)] = (tx.secrets, derived)
    if derive not in derived:
        derived[derive] = derive(source(tx, id))
    result: T = derived[derive]
    return result


def _note(id: str) -> str:
    return f"source of stack {id}"


def previous(tx: Tx, id: str) -> Source | None:
    """Return the source that a rollback restores, the last one applied without failure, or None."""
    text = _find_previous(tx, id)
    return None if text is None else _load_source(tx, text)


def set_source(tx: Tx, id: str, new: Source) -> None:
    """Replace the source of a stack."""
    tx.notes.pop(_note(id), None)
    _set_source(tx, _dump_source(tx, new), id)


def children(tx: Tx, id: str) -> list[Stack]:
    """Return the nested stacks that resources of this stack represent."""
    if (_CHILDREN_OF, id) in tx.cache:
        return list(tx.cache[_CHILDREN_OF, id])
    return _list_children(tx, id)


def find_root(tx: Tx, stack_id: str) -> Stack | None:
    """Return the root stack of this stack's tree, or None if the stack does not exist."""
    stack = find(tx, stack_id)
    return stack if stack is None or stack.root_id == stack.id else find(tx, stack.root_id)


def prime(tx: Tx, root_id: str) -> list[Stack]:
    """
    Load all stacks of the root stack ``root_id`` at once.

    In a read transaction, ``find`` and ``children`` return them from memory afterwards.
    """
    stored = tx.fetch_all(_TREE, {"id": root_id})
    loaded = [STACKS.decode(row, tx.secrets) for row in stored]
    if tx.is_reading:
        for stack, row in zip(loaded, stored, strict=True):
            tx.cache["stacks", stack.id] = row
            tx.cache[_CHILDREN_OF, stack.id] = []
        for stack in loaded:
            if stack.parent_id is not None:
                tx.cache.setdefault((_CHILDREN_OF, stack.parent_id), []).append(stack)
    return loaded


def tree(tx: Tx, id: str) -> list[Stack]:
    """Return the stack and all stacks nested in it, parents first. Deleted stacks are excluded."""
    members = STACKS.all(tx, _TREE, {"id": id})
    below = [stack for stack in members if stack.id == id]
    for parent in below:  # the list grows during the iteration
        below += [stack for stack in members if stack.parent_id == parent.id]
    return below


def purge(tx: Tx, before: datetime, most: int) -> int:
    """
    Delete events and snapshots of stacks that were deleted before this time; return the number of deleted rows.

    Deletes at most ``most`` rows of each table, and the stacks themselves when none of these rows remain.
    """
    ids = _list_gone(tx, before, most)
    if not ids:
        return 0
    return sum(purge_part(tx, ids, most) for purge_part in _PURGE_PARTS) or _purge(tx, ids)


def _dump_source(tx: Tx, source: Source) -> str:
    """Serialize and encrypt the source. Which of its values are hidden may be known to its nested templates only."""
    return tx.secrets.dump(source, always=True)


def _load_source(tx: Tx, column: str) -> Source:
    return msgspec.json.decode(tx.secrets.decrypt(column), type=Source)


def learn_hidden(tx: Tx, stack: Stack) -> bool:
    """Add the values of the stack's hidden parameters to the transaction's secrets. Return whether there are any."""
    hidden = stack.parameters.get("hidden", ())
    if hidden:
        tx.secrets.learn(stack.parameters["values"].get(name) for name in hidden)
    return bool(hidden)


def _hidden_columns(tx: Tx, stack: Stack) -> tuple[str, ...]:
    """Return the columns that are always encrypted, after the transaction has learned the stack's hidden parameters."""
    return ("parameters",) if learn_hidden(tx, stack) else ()


_SNAPSHOTS = Repository(Snapshot, "snapshots", key=("stack_id", "id"))
#: Insert and write a snapshot. Its data are encrypted, as the source of a stack is.
add_snapshot, save_snapshot = (partial(write, encrypt=("data",)) for write in (_SNAPSHOTS.add, _SNAPSHOTS.save))
#: Return the snapshots of a stack, oldest first.
list_snapshots: Callable[[Tx, str], list[Snapshot]] = _SNAPSHOTS.lister("stack_id = :stack_id ORDER BY seq")
#: Return the snapshots of a stack that a cloud has not yet finished.
snapshots_in_progress: Callable[[Tx, str], list[Snapshot]] = _SNAPSHOTS.lister(
    f"stack_id = :stack_id AND status = '{Status.IN_PROGRESS}'"
)
count_snapshots: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM snapshots WHERE stack_id = :stack_id")
delete_snapshot: Callable[[Tx, str], None] = execute("DELETE FROM snapshots WHERE id = :id")


def get_snapshot(tx: Tx, stack_id: str, id: str) -> Snapshot:
    """Return the snapshot. Raises EntityNotFound if the stack has no such snapshot."""
    snapshot = _SNAPSHOTS.find(tx, stack_id, id)
    if snapshot is None:
        raise EntityNotFound.of("Snapshot", id)
    return snapshot
