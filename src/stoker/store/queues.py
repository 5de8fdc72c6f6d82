"""Queues in SQL."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Queue
from stoker.store import rows
from stoker.store.schema import claims, messages, queues, subscriptions
from stoker.store.tx import Tx

#: Two that post to a new queue at once make one.
_ADD = sa.text(
    "INSERT INTO queues (id, project_id, name, metadata, owner, created_at)"
    " VALUES (:id, :project_id, :name, :metadata, :owner, :created_at) ON CONFLICT (project_id, name) DO NOTHING"
)
_ONE = sa.select(queues).where(queues.c.project_id == sa.bindparam("project"), queues.c.name == sa.bindparam("name"))
_HELD = _ONE.with_for_update()
_PAGE = (
    sa.select(queues)
    .where(
        queues.c.project_id == sa.bindparam("project"),
        queues.c.name > sa.bindparam("marker"),
        # LIKE would not tell cases apart on one database and do so on the other.
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
    """False when the project has a queue of that name."""
    values = {
        "id": new.id,
        "project_id": new.project_id,
        "name": new.name,
        "metadata": rows.dump(new.metadata),
        "owner": new.owner,
        "created_at": rows.stamp(new.created_at),
    }
    return tx.run(_ADD, values).rowcount == 1


def find(tx: Tx, project_id: str, name: str, *, hold: bool = False) -> Queue | None:
    row = tx.run(_HELD if hold else _ONE, {"project": project_id, "name": name}).first()
    return None if row is None else of_row(row)


def page(tx: Tx, project_id: str, *, marker: str, limit: int, part: str) -> list[Queue]:
    """By name, from behind ``marker`` on; those whose names hold ``part``."""
    values = {"project": project_id, "marker": marker, "part": part, "limit": limit}
    return [of_row(row) for row in tx.run(_PAGE, values)]


def count(tx: Tx, project_id: str) -> int:
    found: int = tx.run(_COUNT, {"project": project_id}).scalar_one()
    return found


def save_metadata(tx: Tx, id: str, metadata: dict[str, Any]) -> None:
    tx.run(_SAVE, {"id_": id, "metadata_": rows.dump(metadata)})


def delete(tx: Tx, id: str) -> None:
    """With all that is in it."""
    tx.run(_DELETE, {"id_": id})
    for statement in _EMPTY:
        tx.run(statement, {"queue": id})


def of_row(row: Any) -> Queue:
    return Queue(
        id=row.id,
        project_id=row.project_id,
        name=row.name,
        metadata=rows.load(row.metadata),
        owner=row.owner,
        created_at=rows.moment(row.created_at),
    )
