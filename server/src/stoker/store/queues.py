"""Queries for queues."""

from __future__ import annotations

from typing import Any

from stoker.model.messaging import Queue
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_from
from stoker.store.sql import insert, sql, update
from stoker.store.tx import Tx

QUEUES = Repository(Queue, "queues")
#: If two transactions create the same queue, only one row is inserted.
_ADD = sql(f"{insert('queues', *QUEUES.codec.written).text} ON CONFLICT (project_id, name) DO NOTHING RETURNING id")
_NAMED = QUEUES.by("project_id", "name")
#: Not LIKE, which is case-sensitive on PostgreSQL only.
_PAGE = QUEUES.select(
    "project_id = :project_id AND name > :marker AND (CAST(:part AS text) = '' OR replace(name, :part, '') <> name)"
    " ORDER BY name LIMIT :limit"
)
_COUNT = sql("SELECT count(*) FROM queues WHERE project_id = :project_id")
_SET_METADATA = update("queues", "metadata")
_EMPTY = [delete_from(table, "queue_id") for table in ("messages", "subscriptions")]


def add(tx: Tx, new: Queue) -> bool:
    """Insert a queue. Return False if the project has a queue with this name."""
    return tx.execute_fast(_ADD, QUEUES.encode(new, tx.secrets)) is not None


def find(tx: Tx, project_id: str, name: str, *, for_update: bool = False) -> Queue | None:
    """Return the queue, or None; ``for_update`` locks its row."""
    return QUEUES.first(tx, _NAMED, {"project_id": project_id, "name": name}, for_update=for_update)


def page(tx: Tx, project_id: str, *, marker: str, limit: int, part: str) -> list[Queue]:
    """Return at most ``limit`` queues after ``marker``, sorted by name, whose names contain ``part``."""
    return QUEUES.all(tx, _PAGE, {"project_id": project_id, "marker": marker, "part": part, "limit": limit})


def count(tx: Tx, project_id: str) -> int:
    """Return the number of the project's queues."""
    return int(tx.scalar(_COUNT, {"project_id": project_id}))


def save_metadata(tx: Tx, id: str, metadata: dict[str, Any]) -> None:
    """Replace the queue's metadata."""
    tx.execute_fast(_SET_METADATA, {"key_id": id, "metadata": rows.dump(metadata)})


def delete(tx: Tx, id: str) -> None:
    """Delete the queue with its messages and subscriptions."""
    QUEUES.delete(tx, id)
    for statement in _EMPTY:
        tx.execute_fast(statement, {"queue_id": id})
