"""
Queries for messages. Expired messages are never returned, even while they are still stored.

A message belongs to a claim until ``claimed_until``, so the expiry of a claim needs no write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.model.messaging import Message, Stats
from stoker.store import rows
from stoker.store.schema import claims, messages
from stoker.store.tx import Tx

#: The number of expired messages that one post deletes. It exceeds the number of new ones, so they never accumulate.
_TRIM = 50

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_here = messages.c.queue_id == sa.bindparam("queue")
_alive = messages.c.expires_at > _at
_free = sa.and_(messages.c.claimed_until <= _at, messages.c.delayed_until <= _at)

_ADD = sa.insert(messages)
_SEVERAL = (
    sa.select(messages)
    .where(_here, _alive, messages.c.id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(messages.c.seq)
)
_SEVERAL_LOCKED = _SEVERAL.with_for_update()
_OF_CLAIM = sa.select(messages).where(_here, _alive, messages.c.claim_id == sa.bindparam("claim"))
_OF_CLAIM_LOCKED = _OF_CLAIM.order_by(messages.c.seq).with_for_update()
_SEQ = sa.select(messages.c.seq).where(_here, messages.c.id == sa.bindparam("id"))
_PAGE = (
    sa.select(messages)
    .where(
        _here,
        _alive,
        messages.c.seq > sa.bindparam("after"),
        sa.or_(sa.bindparam("echo", type_=sa.Boolean), messages.c.client_id.is_distinct_from(sa.bindparam("client"))),
        sa.or_(sa.bindparam("claimed", type_=sa.Boolean), messages.c.claimed_until <= _at),
        sa.or_(sa.bindparam("delayed", type_=sa.Boolean), messages.c.delayed_until <= _at),
    )
    .order_by(messages.c.seq)
    .limit(sa.bindparam("limit"))
)
_NEWEST = (
    sa.select(messages).where(_here, _alive, messages.c.delayed_until <= _at).order_by(messages.c.seq.desc()).limit(1)
)
#: Messages that another transaction is claiming are skipped; the statement does not wait for them.
_TAKE = (
    sa.select(messages)
    .where(_here, _alive, _free)
    .order_by(messages.c.seq)
    .limit(sa.bindparam("limit"))
    .with_for_update(skip_locked=True)
)
_EXTENDED = messages.c.expires_at < sa.bindparam("until")
_CLAIM = (
    sa.update(messages)
    .where(messages.c.seq.in_(sa.bindparam("seqs", expanding=True)))
    .values(
        claim_id=sa.bindparam("claim"),
        claimed_until=sa.bindparam("until"),
        claim_count=messages.c.claim_count + sa.bindparam("more"),
        ttl=sa.case((_EXTENDED, sa.bindparam("longer_ttl", type_=sa.Integer)), else_=messages.c.ttl),
        expires_at=sa.case((_EXTENDED, sa.bindparam("longer_until", type_=sa.BigInteger)), else_=messages.c.expires_at),
    )
)
_RELEASE = (
    sa.update(messages)
    .where(_here, messages.c.claim_id == sa.bindparam("claim"))
    .values(claim_id=None, claimed_until=0)
)
_DELETE = sa.delete(messages).where(messages.c.seq.in_(sa.bindparam("seqs", expanding=True)))
_DELETE_ALL = sa.delete(messages).where(_here)
_DELETE_CLAIMS = sa.delete(claims).where(claims.c.queue_id == sa.bindparam("queue"))
_expired = (
    sa.select(messages.c.seq)
    .where(messages.c.expires_at <= _at)
    .order_by(messages.c.expires_at)
    .limit(_TRIM)
    .with_for_update(skip_locked=True)
)
_TRIM_EXPIRED = sa.delete(messages).where(messages.c.seq.in_(_expired))
_STATS = sa.select(
    sa.func.count().label("total"),
    sa.func.coalesce(sa.func.sum(sa.case((messages.c.claimed_until > _at, 1), else_=0)), 0).label("claimed"),
    sa.func.min(messages.c.seq).label("oldest"),
    sa.func.max(messages.c.seq).label("newest"),
).where(_here, _alive)
_ENDS = sa.select(messages).where(messages.c.seq.in_(sa.bindparam("seqs", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The filter of a listing. ``claimed`` includes messages of claims, ``delayed`` includes delayed messages."""

    #: The client whose own messages are excluded; None: no client's messages are excluded.
    not_of: str | None = None
    claimed: bool = False
    delayed: bool = False


def add(tx: Tx, queue_id: str, new: Sequence[Message], *, secret: bool = False) -> None:
    """
    Append messages to a queue, in this order. The caller has locked the queue.

    ``secret`` states that the messages may contain secrets, so they are always encrypted.
    """
    tx.run(
        _ADD,
        [
            {
                "id": each.id,
                "queue_id": queue_id,
                "client_id": each.client_id,
                "body": tx.secrets.encrypt(each.body, always=secret),
                "checksum": each.checksum,
                "ttl": each.ttl,
                "created_at": rows.to_micros(each.created_at),
                "expires_at": rows.to_micros(each.expires_at),
                "delayed_until": rows.to_micros(each.delayed_until),
                "claim_id": None,
                "claimed_until": 0,
                "claim_count": each.claim_count,
            }
            for each in new
        ],
    )


def several(tx: Tx, queue_id: str, ids: Sequence[str], *, for_update: bool = False) -> list[Message]:
    """Return those of the messages that exist, oldest first; ``for_update`` locks their rows."""
    now = rows.to_micros(tx.now)
    statement = _SEVERAL_LOCKED if for_update else _SEVERAL
    found = tx.run(statement, {"queue": queue_id, "ids": list(ids), "at": now})
    return [_message(tx, row, now) for row in found]


def of_claim(tx: Tx, queue_id: str, claim_id: str, *, for_update: bool = False) -> list[Message]:
    """Return the messages of a claim, oldest first; ``for_update`` locks their rows."""
    now = rows.to_micros(tx.now)
    statement = _OF_CLAIM_LOCKED if for_update else _OF_CLAIM.order_by(messages.c.seq)
    return [_message(tx, row, now) for row in tx.run(statement, {"queue": queue_id, "claim": claim_id, "at": now})]


def seq(tx: Tx, queue_id: str, id: str) -> int | None:
    """Return the position of a message in its queue, or None."""
    found: int | None = tx.run(_SEQ, {"queue": queue_id, "id": id}).scalar()
    return found


def newest(tx: Tx, queue_id: str) -> list[Message]:
    """Return a list with the newest message that is not delayed, or an empty list."""
    now = rows.to_micros(tx.now)
    return [_message(tx, row, now) for row in tx.run(_NEWEST, {"queue": queue_id, "at": now})]


def page(tx: Tx, queue_id: str, which: Filter, *, after: int, limit: int) -> list[Message]:
    """Return at most ``limit`` messages with a position greater than ``after``, oldest first."""
    now = rows.to_micros(tx.now)
    values = {
        "queue": queue_id,
        "at": now,
        "after": after,
        "limit": limit,
        "echo": which.not_of is None,
        "client": which.not_of or "",
        "claimed": which.claimed,
        "delayed": which.delayed,
    }
    return [_message(tx, row, now) for row in tx.run(_PAGE, values)]


def take(tx: Tx, queue_id: str, limit: int) -> list[Message]:
    """Return the oldest messages that no claim contains, and lock them, so that no other transaction takes them."""
    now = rows.to_micros(tx.now)
    return [_message(tx, row, now) for row in tx.run(_TAKE, {"queue": queue_id, "limit": limit, "at": now})]


def claim(
    tx: Tx, held: Sequence[Message], claim_id: str, *, until: datetime, ttl: int, expires_at: datetime, more: int
) -> None:
    """
    Assign messages to a claim until this time.

    Messages that would expire before ``until`` get ``ttl`` (seconds) and ``expires_at``. ``more`` is added to each
    message's number of claims.
    """
    values = {
        "seqs": [each.seq for each in held],
        "claim": claim_id,
        "until": rows.to_micros(until),
        "longer_ttl": ttl,
        "longer_until": rows.to_micros(expires_at),
        "more": more,
    }
    tx.run(_CLAIM, values)


def release(tx: Tx, queue_id: str, claim_id: str) -> None:
    """Release all messages of a claim."""
    tx.run(_RELEASE, {"queue": queue_id, "claim": claim_id})


def delete(tx: Tx, gone: Sequence[Message]) -> None:
    """Delete messages."""
    if gone:
        tx.run(_DELETE, {"seqs": [each.seq for each in gone]})


def purge(tx: Tx, queue_id: str) -> None:
    """Delete all messages and claims of a queue."""
    tx.run(_DELETE_ALL, {"queue": queue_id})
    tx.run(_DELETE_CLAIMS, {"queue": queue_id})


def trim(tx: Tx) -> None:
    """Delete a few expired messages of any queue."""
    tx.run(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})


def stats(tx: Tx, queue_id: str) -> Stats:
    """Return the numbers of messages in a queue, with the oldest and the newest one."""
    now = rows.to_micros(tx.now)
    row = tx.run(_STATS, {"queue": queue_id, "at": now}).one()
    ends = {}
    if row.total:
        ends = {each.seq: _message(tx, each, now) for each in tx.run(_ENDS, {"seqs": [row.oldest, row.newest]})}
    return Stats(claimed=row.claimed, total=row.total, oldest=ends.get(row.oldest), newest=ends.get(row.newest))


def _message(tx: Tx, row: Any, now: int) -> Message:
    return Message(
        id=row.id,
        body=tx.secrets.decrypt(row.body),
        ttl=row.ttl,
        created_at=rows.from_micros(row.created_at),
        expires_at=rows.from_micros(row.expires_at),
        delayed_until=rows.from_micros(row.delayed_until),
        checksum=row.checksum,
        client_id=row.client_id,
        claim_id=row.claim_id if row.claimed_until > now else None,
        claim_count=row.claim_count,
        seq=row.seq,
    )
