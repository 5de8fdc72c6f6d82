"""Queries for snapshots of stacks."""

from __future__ import annotations

from stoker.model.errors import EntityNotFound
from stoker.model.stack import Snapshot
from stoker.model.status import Status
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_by
from stoker.store.sql import sql
from stoker.store.tx import Tx

_SNAPSHOTS = Repository(Snapshot, "snapshots", key=("stack_id", "id"))
_OF_STACK = _SNAPSHOTS.select("stack_id = :stack_id ORDER BY seq")
_COUNT = sql("SELECT count(*) FROM snapshots WHERE stack_id = :stack_id")
_IN_PROGRESS = _SNAPSHOTS.by("stack_id", "status")
_DELETE = delete_by("snapshots", "id")


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


def in_progress(tx: Tx, stack_id: str) -> list[Snapshot]:
    """Return the stack's snapshots that a cloud has not yet finished."""
    return _SNAPSHOTS.all(tx, _IN_PROGRESS, {"stack_id": stack_id, "status": Status.IN_PROGRESS.value})


def get(tx: Tx, stack_id: str, id: str) -> Snapshot:
    """Return the snapshot. Raises EntityNotFound if the stack has no such snapshot."""
    snapshot = _SNAPSHOTS.find(tx, stack_id, id)
    if snapshot is None:
        raise EntityNotFound.of("Snapshot", id)
    return snapshot


def of_stack(tx: Tx, stack_id: str) -> list[Snapshot]:
    """Return the stack's snapshots, oldest first."""
    return _SNAPSHOTS.all(tx, _OF_STACK, {"stack_id": stack_id})


def count(tx: Tx, stack_id: str) -> int:
    """Return the number of the stack's snapshots."""
    return int(tx.scalar(_COUNT, {"stack_id": stack_id}))


def delete(tx: Tx, id: str) -> None:
    """Delete the snapshot."""
    tx.execute_fast(_DELETE, {"id": id})
