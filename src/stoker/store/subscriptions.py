"""Queries for subscriptions. Expired subscriptions are never returned."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Subscription
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import queues, subscriptions
from stoker.store.tx import Tx

#: The maximum number of expired subscriptions that ``trim`` deletes.
_TRIM = 10

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_here = subscriptions.c.queue_id == sa.bindparam("queue_id")
_alive = subscriptions.c.expires_at > _at
_SUBSCRIPTIONS = Repository(Subscription, subscriptions, fixed=("queue_id",))
_ADD = statements.insert_new(subscriptions, "queue_id", "subscriber")
_ALIVE = _SUBSCRIPTIONS.by("queue_id", "id").where(_alive)
_BY_SUBSCRIBER = _SUBSCRIPTIONS.by("queue_id", "subscriber").where(_alive)
_BY_ID = (
    _SUBSCRIPTIONS.by("id")
    .add_columns(queues.c.project_id, queues.c.name, queues.c.metadata)
    .join(queues, queues.c.id == subscriptions.c.queue_id)
    .where(_alive)
)
_SEQ = sa.select(subscriptions.c.seq).where(_here, subscriptions.c.id == sa.bindparam("id"))
_PAGE = (
    _SUBSCRIPTIONS.select(_here, _alive, subscriptions.c.seq > sa.bindparam("after"))
    .order_by(subscriptions.c.seq)
    .limit(sa.bindparam("limit"))
)
_notified = sa.or_(sa.bindparam("unconfirmed", type_=sa.Boolean), subscriptions.c.confirmed)
_LATEST = sa.select(sa.func.max(subscriptions.c.seq)).where(_here, _alive, _notified)
_IDS = (
    sa.select(subscriptions.c.seq, subscriptions.c.id)
    .where(_here, _alive, _notified)
    .where(subscriptions.c.seq > sa.bindparam("after"), subscriptions.c.seq <= sa.bindparam("upto"))
    .order_by(subscriptions.c.seq)
    .limit(sa.bindparam("limit"))
)
_DELETE = statements.delete(subscriptions, "queue_id", "id")
_DELETE_ALL = sa.delete(subscriptions).where(_here)
_FORGET = sa.delete(subscriptions).where(
    _here, subscriptions.c.subscriber == sa.bindparam("subscriber"), subscriptions.c.expires_at <= _at
)
_TRIM_EXPIRED = statements.delete_expired(subscriptions, subscriptions.c.seq, _TRIM)


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


def with_queue(tx: Tx, id: str) -> tuple[Subscription, str, str, dict[str, Any]] | None:
    """Return (subscription, project id of its queue, name of the queue, metadata of the queue), or None."""
    row = tx.execute_fast(_BY_ID, {"id": id, "at": rows.to_micros(tx.now)})
    if row is None:
        return None
    project_id, name, metadata = row[-3:]
    return _SUBSCRIPTIONS.decode(row, tx.secrets), project_id, name, rows.load(metadata)


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
    tx.execute_fast(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})
    tx.execute_fast(_FORGET, {"queue_id": queue_id, "subscriber": subscriber, "at": rows.to_micros(tx.now)})
