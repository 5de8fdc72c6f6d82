"""Queries for subscriptions. Expired subscriptions are never returned."""

from __future__ import annotations

from collections.abc import Callable

from stoker.model.messaging import Subscription
from stoker.store import rows
from stoker.store.query import execute, scalar, table
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

_SUBSCRIPTIONS = Repository(Subscription, "subscriptions", fixed=("queue_id",))
save = _SUBSCRIPTIONS.save
_HERE = "queue_id = :queue_id AND expires_at > :now"
_ALIVE = _SUBSCRIPTIONS.select(f"{_HERE} AND id = :id")
of_subscriber: Callable[[Tx, str, str], Subscription | None] = _SUBSCRIPTIONS.finder(
    f"{_HERE} AND subscriber = :subscriber"
)
_BY_ID = sql(
    f"SELECT {_SUBSCRIPTIONS.columns}, queues.project_id FROM subscriptions"
    " JOIN queues ON queues.id = subscriptions.queue_id WHERE subscriptions.id = :id AND expires_at > :now"
)
#: Return the position of a subscription in the list of its queue, or None.
seq: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM subscriptions WHERE queue_id = :queue_id AND id = :id"
)
_list_after: Callable[[Tx, str, int, int], list[Subscription]] = _SUBSCRIPTIONS.lister(
    f"{_HERE} AND seq > :after ORDER BY seq LIMIT :limit"
)
#: Return the position of the last subscription of a queue, or None.
latest: Callable[[Tx, str], int | None] = scalar(f"SELECT max(seq) FROM subscriptions WHERE {_HERE}")
_list_ids: Callable[[Tx, str, int, int, int], list[tuple[int, str]]] = table(
    f"SELECT seq, id FROM subscriptions WHERE {_HERE} AND seq > :after AND seq <= :upto ORDER BY seq LIMIT :limit"
)
delete: Callable[[Tx, str, str], None] = execute("DELETE FROM subscriptions WHERE queue_id = :queue_id AND id = :id")
_drop_expired: Callable[[Tx, str, str], None] = execute(
    "DELETE FROM subscriptions WHERE queue_id = :queue_id AND subscriber = :subscriber AND expires_at <= :now"
)
_drop_some_expired: Callable[[Tx], None] = execute(
    "DELETE FROM subscriptions WHERE seq IN"
    " (SELECT seq FROM subscriptions WHERE expires_at <= :now ORDER BY expires_at LIMIT 10 @for_update @skip_locked)"
)


def add(tx: Tx, new: Subscription) -> bool:
    """Insert a subscription. Return False if the queue has a subscription with this subscriber."""
    return _SUBSCRIPTIONS.add(tx, new, unless_exists=True)


def find(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Subscription | None:
    """Return the subscription, or None; ``for_update`` locks its row."""
    values = {"queue_id": queue_id, "id": id, "now": rows.to_micros(tx.now)}
    return _SUBSCRIPTIONS.first(tx, _ALIVE, values, for_update=for_update)


def with_project(tx: Tx, id: str) -> tuple[Subscription, str] | None:
    """Return (subscription, project id of its queue), or None."""
    row = tx.execute_fast(_BY_ID, {"id": id, "now": rows.to_micros(tx.now)})
    return None if row is None else (_SUBSCRIPTIONS.decode(row, tx.secrets), row[-1])


def page(tx: Tx, queue_id: str, *, after: int, limit: int) -> list[Subscription]:
    """Return at most ``limit`` subscriptions with a position greater than ``after``, oldest first."""
    return _list_after(tx, queue_id, after, limit)


def ids(tx: Tx, queue_id: str, *, after: int, upto: int, limit: int) -> list[tuple[int, str]]:
    """Return (position, id) of subscriptions with positions after ``after`` up to ``upto``."""
    return _list_ids(tx, queue_id, after, upto, limit)


def trim(tx: Tx, queue_id: str, subscriber: str) -> None:
    """Delete a few expired subscriptions of any queue, and an expired one with this subscriber."""
    _drop_some_expired(tx)
    _drop_expired(tx, queue_id, subscriber)
