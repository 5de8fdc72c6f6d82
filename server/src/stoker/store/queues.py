"""Queries for queues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from stoker.model.messaging import Queue
from stoker.store.query import execute, scalar
from stoker.store.repository import Repository
from stoker.store.tx import Tx

QUEUES = Repository(Queue, "queues")
_NAMED = QUEUES.select("project_id = :project_id AND name = :name")
#: Not LIKE, which is case-sensitive on PostgreSQL only.
_list_after: Callable[[Tx, str, str, str, int], list[Queue]] = QUEUES.lister(
    "project_id = :project_id AND name > :marker AND (CAST(:part AS text) = '' OR replace(name, :part, '') <> name)"
    " ORDER BY name LIMIT :limit"
)
count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM queues WHERE project_id = :project_id")
_EMPTY = [execute(f"DELETE FROM {table} WHERE queue_id = :queue_id") for table in ("messages", "subscriptions")]


def add(tx: Tx, new: Queue) -> bool:
    """Insert a queue. Return False if the project has a queue with this name, which another transaction may insert."""
    return QUEUES.add(tx, new, unless_exists=True)


def find(tx: Tx, project_id: str, name: str, *, for_update: bool = False) -> Queue | None:
    """Return the queue, or None; ``for_update`` locks its row."""
    return QUEUES.first(tx, _NAMED, {"project_id": project_id, "name": name}, for_update=for_update)


def page(tx: Tx, project_id: str, *, marker: str, limit: int, part: str) -> list[Queue]:
    """Return at most ``limit`` queues after ``marker``, sorted by name, whose names contain ``part``."""
    return _list_after(tx, project_id, marker, part, limit)


def save_metadata(tx: Tx, id: str, metadata: Mapping[str, Any]) -> None:
    """Replace the queue's metadata."""
    QUEUES.update(tx, id, metadata=metadata)


def delete(tx: Tx, id: str) -> None:
    """Delete the queue with its messages and subscriptions."""
    QUEUES.delete(tx, id)
    for empty in _EMPTY:
        empty(tx, id)
