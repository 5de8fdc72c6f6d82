"""Snapshots of stacks in SQL."""

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
    tx.run(
        _ADD,
        {
            "id": new.id,
            "stack_id": new.stack_id,
            "name": new.name,
            "status": new.status.value,
            "reason": new.reason,
            "data": rows.dump(new.data),
            "created_at": rows.stamp(new.created_at),
        },
    )


def get(tx: Tx, stack_id: str, id: str) -> Snapshot:
    """Raises EntityNotFound."""
    row = tx.run(_ONE, {"stack": stack_id, "id": id}).first()
    if row is None:
        raise EntityNotFound.of("Snapshot", id)
    return _snapshot(row)


def of_stack(tx: Tx, stack_id: str) -> list[Snapshot]:
    return [_snapshot(row) for row in tx.run(_OF_STACK, {"stack": stack_id})]


def count(tx: Tx, stack_id: str) -> int:
    found: int = tx.run(_COUNT, {"stack": stack_id}).scalar_one()
    return found


def delete(tx: Tx, id: str) -> None:
    tx.run(_DELETE, {"id": id})


def _snapshot(row: Any) -> Snapshot:
    return Snapshot(
        id=row.id,
        stack_id=row.stack_id,
        name=row.name,
        status=Status(row.status),
        reason=row.reason,
        data=rows.load(row.data),
        created_at=rows.moment(row.created_at),
    )
