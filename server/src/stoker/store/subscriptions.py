"""Queries for subscriptions. Expired subscriptions are never returned."""

from __future__ import annotations

from stoker.model.messaging import Subscription
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_from
from stoker.store.sql import insert, sql
from stoker.store.tx import Tx

_SUBSCRIPTIONS = Repository(Subscription, "subscriptions", fixed=("queue_id",))
_ADD = sql(
    f"{insert('subscriptions', *_SUBSCRIPTIONS.codec.written).text}"
    " ON CONFLICT (queue_id, subscriber) DO NOTHING RETURNING id"
)
_HERE = "queue_id = :queue_id AND expires_at > :at"
_ALIVE = _SUBSCRIPTIONS.select(f"{_HERE} AND id = :id")
_BY_SUBSCRIBER = _SUBSCRIPTIONS.select(f"{_HERE} AND subscriber = :subscriber")
_BY_ID = sql(
    f"SELECT {_SUBSCRIPTIONS.columns_sql('s')}, q.project_id FROM subscriptions s JOIN queues q ON q.id = s.queue_id"
    " WHERE s.id = :id AND s.expires_at > :at"
)
_SEQ = sql("SELECT seq FROM subscriptions WHERE queue_id = :queue_id AND id = :id")
_PAGE = _SUBSCRIPTIONS.select(f"{_HERE} AND seq > :after ORDER BY seq LIMIT :limit")
_NOTIFIED = f"{_HERE} AND (:unconfirmed OR confirmed)"
_LATEST = sql(f"SELECT max(seq) FROM subscriptions WHERE {_NOTIFIED}")
_IDS = sql(
    f"SELECT seq, id FROM subscriptions WHERE {_NOTIFIED} AND seq > :after AND seq <= :upto ORDER BY seq LIMIT :limit"
)
_DELETE = delete_from("subscriptions", "queue_id", "id")
_DELETE_ALL = delete_from("subscriptions", "queue_id")
_FORGET = sql("DELETE FROM subscriptions WHERE queue_id = :queue_id AND subscriber = :subscriber AND expires_at <= :at")
_TRIM = sql(
    "DELETE FROM subscriptions WHERE seq IN"
    " (SELECT seq FROM subscriptions WHERE expires_at <= :at ORDER BY expires_at LIMIT 10 @for_update @skip_locked)"
)


def add(tx: Tx, new: Subscription) -> bool:
    """Insert a subscription. Return False if the queue has a subscription with this subscriber."""
    return tx.execute_fast(_ADD, _SUBSCRIPTIONS.encode(new, tx.secrets)) is not None


def find(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Subscription | None:
    """Return the subscription, or None; ``for_update`` locks its row."""
    values = {"queue_id": queue_id, "id": id, "at": rows.to_micros(tx.now)}
    return _SUBSCRIPTIONS.first(tx, _ALIVE, values, for_update=for_update)


def of_subscriber(tx: Tx, queue_id: str, subscriber: str) -> Subscription | None:
    """Return the queue's subscription with this subscriber, or None."""
    values = {"queue_id": queue_id, "subscriber": subscriber, "at": rows.to_micros(tx.now)}
    return _SUBSCRIPTIONS.first(tx, _BY_SUBSCRIBER, values)


def with_project(tx: Tx, id: str) -> tuple[Subscription, str] | None:
    """Return (subscription, project id of its queue), or None."""
    row = tx.execute_fast(_BY_ID, {"id": id, "at": rows.to_micros(tx.now)})
    return None if row is None else (_SUBSCRIPTIONS.decode(row, tx.secrets), row[-1])


def seq(tx: Tx, queue_id: str, id: str) -> int | None:
    """Return the position of a subscription in its queue's list, or None."""
    seq: int | None = tx.scalar(_SEQ, {"queue_id": queue_id, "id": id})
    return seq


def page(tx: Tx, queue_id: str, *, after: int, limit: int) -> list[Subscription]:
    """Return at most ``limit`` subscriptions with a position greater than ``after``, oldest first."""
    values = {"queue_id": queue_id, "after": after, "limit": limit, "at": rows.to_micros(tx.now)}
    return _SUBSCRIPTIONS.all(tx, _PAGE, values)


def latest(tx: Tx, queue_id: str, *, unconfirmed: bool) -> int | None:
    """
    Return the position of the last subscription that receives messages, or None.

    ``unconfirmed`` includes subscriptions that were not confirmed.
    """
    values = {"queue_id": queue_id, "unconfirmed": unconfirmed, "at": rows.to_micros(tx.now)}
    latest: int | None = tx.scalar(_LATEST, values)
    return latest


def ids(tx: Tx, queue_id: str, *, after: int, upto: int, limit: int, unconfirmed: bool) -> list[tuple[int, str]]:
    """Return (position, id) of subscriptions that receive messages, with positions after ``after`` up to ``upto``."""
    values = {
        "queue_id": queue_id,
        "after": after,
        "upto": upto,
        "limit": limit,
        "unconfirmed": unconfirmed,
        "at": rows.to_micros(tx.now),
    }
    return [(seq, id) for seq, id in tx.fetch_all(_IDS, values)]


def save(tx: Tx, changed: Subscription) -> None:
    """Write a stored subscription. No other subscription of the queue has its subscriber."""
    _SUBSCRIPTIONS.save(tx, changed)


def delete(tx: Tx, queue_id: str, id: str) -> None:
    """Delete the subscription."""
    tx.execute_fast(_DELETE, {"queue_id": queue_id, "id": id})


def purge(tx: Tx, queue_id: str) -> None:
    """Delete all subscriptions of a queue."""
    tx.execute_fast(_DELETE_ALL, {"queue_id": queue_id})


def trim(tx: Tx, queue_id: str, subscriber: str) -> None:
    """Delete a few expired subscriptions of any queue, and an expired one with this subscriber."""
    tx.execute_fast(_TRIM, {"at": rows.to_micros(tx.now)})
    tx.execute_fast(_FORGET, {"queue_id": queue_id, "subscriber": subscriber, "at": rows.to_micros(tx.now)})
