"""Queries for snapshots of stacks."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.errors import EntityNotFound
from stoker.model.stack import Snapshot
from stoker.model.status import Status
from stoker.store.query import execute, scalar
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_SNAPSHOTS = Repository(Snapshot, "snapshots", key=("stack_id", "id"))
#: Return the snapshots of a stack, oldest first.
of_stack: Callable[[Tx, str], list[Snapshot]] = _SNAPSHOTS.lister("stack_id = :stack_id ORDER BY seq")
#: Return the snapshots of a stack that a cloud has not yet finished.
in_progress: Callable[[Tx, str], list[Snapshot]] = _SNAPSHOTS.lister(
    f"stack_id = :stack_id AND status = '{Status.IN_PROGRESS}'"
)
count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM snapshots WHERE stack_id = :stack_id")
delete: Callable[[Tx, str], None] = execute("DELETE FROM snapshots WHERE id = :id")


def add(tx: Tx, new: Snapshot) -> None:
    """
    Insert a snapshot. With ``parameter_defaults`` it is always encrypted: only the nested templates that use these
    defaults declare which of them are hidden.
    """
    _SNAPSHOTS.add(tx, new, encrypt=_encrypted(new))


def save(tx: Tx, changed: Snapshot) -> None:
    """Write a snapshot, encrypted as by ``add``."""
    _SNAPSHOTS.save(tx, changed, encrypt=_encrypted(changed))


def _encrypted(snapshot: Snapshot) -> tuple[str, ...]:
    return ("data",) if snapshot.data["environment"].get("parameter_defaults") else ()


def get(tx: Tx, stack_id: str, id: str) -> Snapshot:
    """Return the snapshot. Raises EntityNotFound if the stack has no such snapshot."""
    snapshot = _SNAPSHOTS.find(tx, stack_id, id)
    if snapshot is None:
        raise EntityNotFound.of("Snapshot", id)
    return snapshot
