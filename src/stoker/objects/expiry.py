"""Expiring objects: they become invisible at their expiry time, and a job deletes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.objects import Container, Stored
from stoker.objects.port import Port
from stoker.store import containers, objects, rows
from stoker.store.open import Store
from stoker.store.tx import Tx

JOB = "objects.expire"


def register(store: Store, port: Port) -> None:
    """Register the handler of the expiry job."""
    port.work.register(JOB, lambda args: store.write(lambda tx: _expire(tx, args)))


def plan(tx: Tx, port: Port, seq: int, delete_at: int | None) -> None:
    """
    Schedule the deletion of a row. Call again when the time changes: the earlier job then finds the row not yet
    expired.
    """
    if delete_at is not None:
        port.work.defer(tx, JOB, f"{seq}/{delete_at}", {"seq": seq}, at=rows.from_micros(delete_at))


def sweep(tx: Tx, container: Container) -> None:
    """Delete all expired objects of a container. The container must be locked."""
    visible, size, kept = objects.delete_expired(tx, container.account, container.name)
    containers.count(tx, container.account, container.name, objects=-visible, size=-size, kept=-kept)


def remove(tx: Tx, row: Stored) -> None:
    """Delete one row and update the counters of its container. The container must be locked."""
    objects.delete(tx, row.seq)
    visible = int(row.replaced_at is None and not row.marker)
    containers.count(tx, row.account, row.container, objects=-visible, size=-row.size, kept=visible - 1)


def _expire(tx: Tx, args: Mapping[str, Any]) -> None:
    unlocked = objects.by_seq(tx, args["seq"])
    if unlocked is None or containers.find(tx, unlocked.account, unlocked.container, for_update=True) is None:
        return
    # Read again under the lock: the object may have moved to an archive or have a later expiry.
    row = objects.by_seq(tx, unlocked.seq)
    if row is not None and row.container == unlocked.container and row.has_expired(rows.to_micros(tx.now)):
        remove(tx, row)
