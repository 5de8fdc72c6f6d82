"""Objects that are to go at a time of their own: nobody sees them after it, and a job takes them away."""

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
    """Tell the work who does the job."""
    port.work.register(JOB, lambda args: store.write(lambda tx: _expire(tx, args)))


def plan(tx: Tx, port: Port, seq: int, delete_at: int | None) -> None:
    """Have the row taken away at its time. Planned anew when that changes: an earlier job finds it is not yet time."""
    if delete_at is not None:
        port.work.defer(tx, JOB, f"{seq}/{delete_at}", {"seq": seq}, at=rows.moment(delete_at))


def sweep(tx: Tx, container: Container) -> None:
    """Take away now what has expired in this container, which is held."""
    seen, size, kept = objects.delete_expired(tx, container.account, container.name)
    containers.count(tx, container.account, container.name, objects=-seen, size=-size, kept=-kept)


def remove(tx: Tx, row: Stored) -> None:
    """Take one row away, and count it out of its container, which is held."""
    objects.delete(tx, row.seq)
    seen = int(row.replaced_at is None and not row.marker)
    containers.count(tx, row.account, row.container, objects=-seen, size=-row.size, kept=seen - 1)


def _expire(tx: Tx, args: Mapping[str, Any]) -> None:
    known = objects.by_seq(tx, args["seq"])
    if known is None or containers.find(tx, known.account, known.container, hold=True) is None:
        return
    # Again, now that it is held: it may have moved to an archive, or have been given more time.
    row = objects.by_seq(tx, known.seq)
    if row is not None and row.container == known.container and row.expired(rows.stamp(tx.now)):
        remove(tx, row)
