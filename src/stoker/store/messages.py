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
from stoker.store import rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import claims, messages
from stoker.store.tx import Tx

#: The number of expired messages that one post deletes. It exceeds the number of new ones, so they never accumulate.
_TRIM = 50

_at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
_here = messages.c.queue_id == sa.bindparam("queue_id")
_alive = messages.c.expires_at > _at
_free = sa.and_(messages.c.claimed_until <= _at, messages.c.delayed_until <= _at)

_MESSAGES = Repository(Message, messages, unmapped=("queue_id", "claimed_until"))
#: The columns of a message; ``claim_id`` is NULL after the expiry of the claim.
_COLUMNS = [
    sa.case((messages.c.claimed_until > _at, column)) if column is messages.c.claim_id else column
    for column in _MESSAGES.columns
]


def _select(*conditions: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(*_COLUMNS).where(*conditions)


_ADD = sa.insert(messages)
_SEVERAL = _select(_here, _alive, messages.c.id.in_(sa.bindparam("ids", expanding=True))).order_by(messages.c.seq)
_OF_CLAIM = _select(_here, _alive, messages.c.claim_id == sa.bindparam("claim")).order_by(messages.c.seq)
_SEQ = sa.select(messages.c.seq).where(_here, messages.c.id == sa.bindparam("id"))
_PAGE = (
    _select(
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
_NEWEST = _select(_here, _alive, messages.c.delayed_until <= _at).order_by(messages.c.seq.desc()).limit(1)
#: Messages that another transaction is claiming are skipped; the statement does not wait for them.
_TAKE = (
    _select(_here, _alive, _free)
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
    .where(*statements.equal(messages, "queue_id", "claim_id", prefix="key_"))
    .values(claim_id=None, claimed_until=0)
)
_DELETE = sa.delete(messages).where(messages.c.seq.in_(sa.bindparam("seqs", expanding=True)))
_DELETE_ALL = [statements.delete(table, "queue_id") for table in (messages, claims)]
_TRIM_EXPIRED = statements.delete_expired(messages, messages.c.seq, _TRIM)
_STATS = sa.select(
    sa.func.count(),
    sa.func.coalesce(sa.func.sum(sa.case((messages.c.claimed_until > _at, 1), else_=0)), 0),
    sa.func.min(messages.c.seq),
    sa.func.max(messages.c.seq),
).where(_here, _alive)
_ENDS = _select(_here, messages.c.seq.in_((sa.bindparam("oldest"), sa.bindparam("newest"))))


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
    columns = {"queue_id": queue_id, "claim_id": None, "claimed_until": 0}
    values = [_MESSAGES.encode(message, tx.secrets) | columns for message in new]
    if secret:
        for row in values:
            row["body"] = tx.secrets.encrypt(row["body"], always=True)
    tx.run_many(_ADD, values)


def several(tx: Tx, queue_id: str, ids: Sequence[str], *, for_update: bool = False) -> list[Message]:
    """Return those of the messages that exist, oldest first; ``for_update`` locks their rows."""
    values = {"queue_id": queue_id, "ids": list(ids), "at": rows.to_micros(tx.now)}
    result = tx.run(_SEVERAL.with_for_update() if for_update else _SEVERAL, values)
    return [_MESSAGES.decode(row, tx.secrets) for row in result]


def of_claim(tx: Tx, queue_id: str, claim_id: str, *, for_update: bool = False) -> list[Message]:
    """Return the messages of a claim, oldest first; ``for_update`` locks their rows."""
    values = {"queue_id": queue_id, "claim": claim_id, "at": rows.to_micros(tx.now)}
    return _MESSAGES.all(tx, _OF_CLAIM, values, for_update=for_update)


def seq(tx: Tx, queue_id: str, id: str) -> int | None:
    """Return the position of a message in its queue, or None."""
    seq: int | None = tx.scalar(_SEQ, {"queue_id": queue_id, "id": id})
    return seq


def newest(tx: Tx, queue_id: str) -> list[Message]:
    """Return a list with the newest message that is not delayed, or an empty list."""
    return _MESSAGES.all(tx, _NEWEST, {"queue_id": queue_id, "at": rows.to_micros(tx.now)})


def page(tx: Tx, queue_id: str, which: Filter, *, after: int, limit: int) -> list[Message]:
    """Return at most ``limit`` messages with a position greater than ``after``, oldest first."""
    values = {
        "queue_id": queue_id,
        "at": rows.to_micros(tx.now),
        "after": after,
        "limit": limit,
        "echo": which.not_of is None,
        "client": which.not_of or "",
        "claimed": which.claimed,
        "delayed": which.delayed,
    }
    return _MESSAGES.all(tx, _PAGE, values)


def take(tx: Tx, queue_id: str, limit: int) -> list[Message]:
    """Return the oldest messages that no claim contains, and lock them, so that no other transaction takes them."""
    return _MESSAGES.all(tx, _TAKE, {"queue_id": queue_id, "limit": limit, "at": rows.to_micros(tx.now)})


def claim(
    tx: Tx, claimed: Sequence[Message], claim_id: str, *, until: datetime, ttl: int, expires_at: datetime, more: int
) -> None:
    """
    Assign messages to a claim until this time.

    Messages that would expire before ``until`` get ``ttl`` (seconds) and ``expires_at``. ``more`` is added to each
    message's number of claims.
    """
    values = {
        "seqs": [message.seq for message in claimed],
        "claim": claim_id,
        "until": rows.to_micros(until),
        "longer_ttl": ttl,
        "longer_until": rows.to_micros(expires_at),
        "more": more,
    }
    tx.run(_CLAIM, values)


def release(tx: Tx, queue_id: str, claim_id: str) -> None:
    """Release all messages of a claim."""
    tx.execute_fast(_RELEASE, {"key_queue_id": queue_id, "key_claim_id": claim_id})


def delete(tx: Tx, deleted: Sequence[Message]) -> None:
    """Delete messages."""
    if deleted:
        tx.run(_DELETE, {"seqs": [message.seq for message in deleted]})


def purge(tx: Tx, queue_id: str) -> None:
    """Delete all messages and claims of a queue."""
    for statement in _DELETE_ALL:
        tx.execute_fast(statement, {"queue_id": queue_id})


def trim(tx: Tx) -> None:
    """Delete a few expired messages of any queue."""
    tx.execute_fast(_TRIM_EXPIRED, {"at": rows.to_micros(tx.now)})


def stats(tx: Tx, queue_id: str) -> Stats:
    """Return the numbers of messages in a queue, with the oldest and the newest one."""
    values = {"queue_id": queue_id, "at": rows.to_micros(tx.now)}
    total, claimed, oldest, newest = tx.execute_fast(_STATS, values)
    ends = {
        message.seq: message for message in _MESSAGES.all(tx, _ENDS, {**values, "oldest": oldest, "newest": newest})
    }
    return Stats(claimed=claimed, total=total, oldest=ends.get(oldest), newest=ends.get(newest))
