"""Queries for snapshots of stacks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.errors import EntityNotFound
from stoker.model.stack import Snapshot
from stoker.model.status import Status
from stoker.store import rows
from stoker.store.schema import snapshots
from stoker.store.tx import Tx

_ADD = sa.insert(snapshots)
_ONE = sa.select(snapshots).where(snapshots.c.stack_id == sa.bindparam("stack"), snapshots.c.id == sa.bindparam("id"))
_OF_STACK = sa.select(snapshots).where(snapshots.c.stack_id == sa.bindparam("stack")).order_by(snapshots.c.seq)
_COUNT = sa.select(sa.func.count()).where(snapshots.c.stack_id == sa.bindparam("stack"))
_DELETE = sa.delete(snapshots).where(snapshots.c.id == sa.bindparam("id"))


def add(tx: Tx, new: Snapshot) -> None:
    """Insert a snapshot."""
    tx.run(
        _ADD,
        {
            "id": new.id,
            "stack_id": new.stack_id,
            "name": new.name,
            "status": new.status.value,
            "reason": new.reason,
            "data": tx.secrets.dump(new.data, always=bool(new.data["environment"].get("parameter_defaults"))),
            "created_at": rows.to_micros(new.created_at),
        },
    )


def get(tx: Tx, stack_id: str, id: str) -> Snapshot:
    """Return the snapshot. Raises EntityNotFound if the stack has no such snapshot."""
    row = tx.run(_ONE, {"stack": stack_id, "id": id}).first()
    if row is None:
        raise EntityNotFound.of("Snapshot", id)
    return _snapshot(tx, row)


def of_stack(tx: Tx, stack_id: str) -> list[Snapshot]:
    """Return the stack's snapshots, oldest first."""
    return [_snapshot(tx, row) for row in tx.run(_OF_STACK, {"stack": stack_id})]


def count(tx: Tx, stack_id: str) -> int:
    """Return the number of the stack's snapshots."""
    found: int = tx.run(_COUNT, {"stack": stack_id}).scalar_one()
    return found


def delete(tx: Tx, id: str) -> None:
    """Delete the snapshot."""
    tx.run(_DELETE, {"id": id})


def _snapshot(tx: Tx, row: Any) -> Snapshot:
    return Snapshot(
        id=row.id,
        stack_id=row.stack_id,
        name=row.name,
        status=Status(row.status),
        reason=row.reason,
        data=tx.secrets.load(row.data),
        created_at=rows.from_micros(row.created_at),
    )
