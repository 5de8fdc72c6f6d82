"""Queries for subscriptions. Expired subscriptions are never returned."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Subscription
from stoker.store import rows
from stoker.store.schema import queues, subscriptions
from stoker.store.tx import Tx

#: The maximum number of expired subscriptions that ``trim`` deletes.
_TRIM = 10

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_here = subscriptions.c.queue_id == sa.bindparam("queue")
_alive = subscriptions.c.expires_at > _at
_ADD = sa.text(
    "INSERT INTO subscriptions (id, queue_id, subscriber, ttl, options, confirmed, renewed_at, expires_at)"
    " VALUES (:id, :queue_id, :subscriber, :ttl, :options, :confirmed, :renewed_at, :expires_at)"
    " ON CONFLICT (queue_id, subscriber) DO NOTHING"
).bindparams(sa.bindparam("confirmed", type_=sa.Boolean))
_ONE = sa.select(subscriptions).where(_here, _alive, subscriptions.c.id == sa.bindparam("id"))
_LOCKED = _ONE.with_for_update()
_BY_SUBSCRIBER = sa.select(subscriptions).where(_here, _alive, subscriptions.c.subscriber == sa.bindparam("subscriber"))
_BY_ID = (
    sa.select(subscriptions, queues.c.project_id, queues.c.name, queues.c.metadata.label("queue_metadata"))
    .join(queues, queues.c.id == subscriptions.c.queue_id)
    .where(_alive, subscriptions.c.id == sa.bindparam("id"))
)
_SEQ = sa.select(subscriptions.c.seq).where(_here, subscriptions.c.id == sa.bindparam("id"))
_PAGE = (
    sa.select(subscriptions)
    .where(_here, _alive, subscriptions.c.seq > sa.bindparam("after"))
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
_SAVE = (
    sa.update(subscriptions)
    .where(subscriptions.c.id == sa.bindparam("id_"))
    .values(
        subscriber=sa.bindparam("subscriber_"),
        ttl=sa.bindparam("ttl_"),
        options=sa.bindparam("options_"),
        confirmed=sa.bindparam("confirmed_"),
        renewed_at=sa.bindparam("renewed"),
        expires_at=sa.bindparam("expires"),
    )
)
_DELETE = sa.delete(subscriptions).where(_here, subscriptions.c.id == sa.bindparam("id_"))
_DELETE_ALL = sa.delete(subscriptions).where(_here)
_FORGET = sa.delete(subscriptions).where(
    _here, subscriptions.c.subscriber == sa.bindparam("subscriber"), subscriptions.c.expires_at <= _at
)
_expired = (
    sa.select(subscriptions.c.seq)
    .where(subscriptions.c.expires_at <= _at)
    .order_by(subscriptions.c.expires_at)
    .limit(_TRIM)
    .with_for_update(skip_locked=True)
)
_TRIM_EXPIRED = sa.delete(subscriptions).where(subscriptions.c.seq.in_(_expired))


def add(tx: Tx, new: Subscription) -> bool:
    """Insert a subscription. Return False if the queue has a subscription with this subscriber."""
    return tx.run(_ADD, {"id": new.id, "queue_id": new.queue_id, **_values(new)}).rowcount == 1


def find(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Subscription | None:
    """Return the subscription, or None; ``for_update`` locks its row."""
    row = tx.run(_LOCKED if for_update else _ONE, {"queue": queue_id, "id": id, "at": rows.to_micros(tx.now)}).first()
    return None if row is None else _subscription(row)


def of_subscriber(tx: Tx, queue_id: str, subscriber: str) -> Subscription | None:
    """Return the queue's subscription with this subscriber, or None."""
    values = {"queue": queue_id, "subscriber": subscriber, "at": rows.to_micros(tx.now)}
    row = tx.run(_BY_SUBSCRIBER, values).first()
    return None if row is None else _subscription(row)


def with_queue(tx: Tx, id: str) -> tuple[Subscription, str, str, dict[str, Any]] | None:
    """Return (subscription, project id of its queue, name of the queue, metadata of the queue), or None."""
    row = tx.run(_BY_ID, {"id": id, "at": rows.to_micros(tx.now)}).first()
    return None if row is None else (_subscription(row), row.project_id, row.name, rows.load(row.queue_metadata))


def seq(tx: Tx, queue_id: str, id: str) -> int | None:
    """Return the position of a subscription in its queue's list, or None."""
    found: int | None = tx.run(_SEQ, {"queue": queue_id, "id": id}).scalar()
    return found


def page(tx: Tx, queue_id: str, *, after: int, limit: int) -> list[Subscription]:
    """Return at most ``limit`` subscriptions with a position greater than ``after``, oldest first."""
    values = {"queue": queue_id, "after": after, "limit": limit, "at": rows.to_micros(tx.now)}
    return [_subscription(row) for row in tx.run(_PAGE, values)]


def latest(tx: Tx, queue_id: str, *, unconfirmed: bool) -> int | None:
    """
    Return the position of the last subscription that receives messages, or None.

    ``unconfirmed`` includes subscriptions that were not confirmed.
    """
    values = {"queue": queue_id, "unconfirmed": unconfirmed, "at": rows.to_micros(tx.now)}
    found: int | None = tx.run(_LATEST, values).scalar()
    return found


def ids(tx: Tx, queue_id: str, *, after: int, upto: int, limit: int, unconfirmed: bool) -> list[tuple[int, str]]:
    """Return (position, id) of subscriptions that receive messages, with positions after ``after`` up to ``upto``."""
    values = {
        "queue": queue_id,
        "after": after,
        "upto": upto,
        "limit": limit,
        "unconfirmed": unconfirmed,
        "at": rows.to_micros(tx.now),
    }
    return [(row.seq, row.id) for row in tx.run(_IDS, values)]


def save(tx: Tx, changed: Subscription) -> None:
    """Write a stored subscription. No other subscription of the queue has its subscriber."""
    renamed = {"subscriber": "subscriber_", "ttl": "ttl_", "options": "options_", "confirmed": "confirmed_"}
    renamed |= {"renewed_at": "renewed", "expires_at": "expires"}
    tx.run(_SAVE, {"id_": changed.id} | {renamed[name]: value for name, value in _values(changed).items()})


def delete(tx: Tx, queue_id: str, id: str) -> None:
    """Delete the subscription."""
    tx.run(_DELETE, {"queue": queue_id, "id_": id})


def purge(tx: Tx, queue_id: str) -> None:
    """Delete all subscriptions of a queue."""
    tx.run(_DELETE_ALL, {"queue": queue_id})


def trim(tx: Tx, queue_id: str, subscriber: str) -> None:
    """Delete a few expired subscriptions of any queue, and an expired one with this subscriber."""
    tx.run(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})
    tx.run(_FORGET, {"queue": queue_id, "subscriber": subscriber, "at": rows.to_micros(tx.now)})


def _values(of: Subscription) -> dict[str, Any]:
    return {
        "subscriber": of.subscriber,
        "ttl": of.ttl,
        "options": rows.dump(of.options),
        "confirmed": of.confirmed,
        "renewed_at": rows.to_micros(of.renewed_at),
        "expires_at": rows.to_micros(of.expires_at),
    }


def _subscription(row: Any) -> Subscription:
    return Subscription(
        id=row.id,
        queue_id=row.queue_id,
        subscriber=row.subscriber,
        ttl=row.ttl,
        options=rows.load(row.options),
        confirmed=row.confirmed,
        renewed_at=rows.from_micros(row.renewed_at),
        expires_at=rows.from_micros(row.expires_at),
    )
