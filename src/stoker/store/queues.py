"""Queries for queues."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Queue
from stoker.store import rows
from stoker.store.schema import claims, messages, queues, subscriptions
from stoker.store.tx import Tx

#: If two transactions create the same queue, only one row is inserted.
_ADD = sa.text(
    "INSERT INTO queues (id, project_id, name, metadata, owner, created_at)"
    " VALUES (:id, :project_id, :name, :metadata, :owner, :created_at) ON CONFLICT (project_id, name) DO NOTHING"
)
_ONE = sa.select(queues).where(queues.c.project_id == sa.bindparam("project"), queues.c.name == sa.bindparam("name"))
_LOCKED = _ONE.with_for_update()
_PAGE = (
    sa.select(queues)
    .where(
        queues.c.project_id == sa.bindparam("project"),
        queues.c.name > sa.bindparam("marker"),
        # Not LIKE, which is case-sensitive on PostgreSQL only.
        sa.or_(
            sa.bindparam("part", type_=sa.String) == "",
            sa.func.replace(queues.c.name, sa.bindparam("part"), "") != queues.c.name,
        ),
    )
    .order_by(queues.c.name)
    .limit(sa.bindparam("limit"))
)
_COUNT = sa.select(sa.func.count()).where(queues.c.project_id == sa.bindparam("project"))
_SAVE = sa.update(queues).where(queues.c.id == sa.bindparam("id_")).values(metadata=sa.bindparam("metadata_"))
_DELETE = sa.delete(queues).where(queues.c.id == sa.bindparam("id_"))
_EMPTY = [
    sa.delete(table).where(table.c.queue_id == sa.bindparam("queue")) for table in (messages, claims, subscriptions)
]


def add(tx: Tx, new: Queue) -> bool:
    """Insert a queue. Return False if the project has a queue with this name."""
    values = {
        "id": new.id,
        "project_id": new.project_id,
        "name": new.name,
        "metadata": rows.dump(new.metadata),
        "owner": new.owner,
        "created_at": rows.to_micros(new.created_at),
    }
    return tx.run(_ADD, values).rowcount == 1


def find(tx: Tx, project_id: str, name: str, *, for_update: bool = False) -> Queue | None:
    """Return the queue, or None; ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _ONE, {"project": project_id, "name": name}).first()
    return None if row is None else of_row(row)


def page(tx: Tx, project_id: str, *, marker: str, limit: int, part: str) -> list[Queue]:
    """Return at most ``limit`` queues after ``marker``, sorted by name, whose names contain ``part``."""
    values = {"project": project_id, "marker": marker, "part": part, "limit": limit}
    return [of_row(row) for row in tx.run(_PAGE, values)]


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's queues."""
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def save_metadata(tx: Tx, id: str, metadata: dict[str, Any]) -> None:
    """Replace the queue's metadata."""
    tx.run(_SAVE, {"id_": id, "metadata_": rows.dump(metadata)})


def delete(tx: Tx, id: str) -> None:
    """Delete the queue with its messages, claims and subscriptions."""
    tx.run(_DELETE, {"id_": id})
    for statement in _EMPTY:
        tx.run(statement, {"queue": id})


def of_row(row: Any) -> Queue:
    """Return the queue in a row of the table."""
    return Queue(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        metadata=rows.load(row.metadata),
        owner=row.owner,
        created_at=rows.from_micros(row.created_at),
    )
