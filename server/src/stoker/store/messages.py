"""Queries for messages. Expired messages are never returned, even while they are still stored."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.messaging import Message, Stats
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import delete as delete_from
from stoker.store.sql import insert, sql
from stoker.store.tx import Tx

_MESSAGES = Repository(Message, "messages")
_HERE = "queue_id = :queue_id AND expires_at > :at"
_ADD = insert("messages", *_MESSAGES.codec.written, "queue_id")
_SEVERAL = _MESSAGES.select(f"{_HERE} AND id @in(ids) ORDER BY seq")
_SEQ = sql("SELECT seq FROM messages WHERE queue_id = :queue_id AND id = :id")
_PAGE = _MESSAGES.select(
    f"{_HERE} AND seq > :after AND coalesce(client_id, '') <> :not_of AND delayed_until <= :due"
    " ORDER BY seq LIMIT :limit"
)
_NEWEST = _MESSAGES.select(f"{_HERE} AND delayed_until <= :at ORDER BY seq DESC LIMIT 1")
#: Messages that another transaction is removing are skipped; the statement does not wait for them.
_OLDEST = _MESSAGES.select(f"{_HERE} AND delayed_until <= :at ORDER BY seq LIMIT :limit @for_update @skip_locked")
_DELETE = sql("DELETE FROM messages WHERE seq @in_numbers(seqs)")
_DELETE_NAMED = sql("DELETE FROM messages WHERE queue_id = :queue_id AND id @in(ids)")
_DELETE_ALL = delete_from("messages", "queue_id")
#: The limit exceeds the number of messages of one post, so expired messages never accumulate.
_TRIM = sql(
    "DELETE FROM messages WHERE seq IN"
    " (SELECT seq FROM messages WHERE expires_at <= :at ORDER BY expires_at LIMIT 50 @for_update @skip_locked)"
)
_STATS = sql(f"SELECT count(*), min(seq), max(seq) FROM messages WHERE {_HERE}")
_ENDS = _MESSAGES.select("queue_id = :queue_id AND seq IN (:oldest, :newest)")
#: Later than any time.
_NEVER = 2**62


def add(tx: Tx, queue_id: str, new: Sequence[Message], *, secret: bool = False) -> None:
    """
    Append messages to a queue, in this order. The caller has locked the queue.

    ``secret`` states that the messages may contain secrets, so they are always encrypted.
    """
    values = [{**_MESSAGES.encode(message, tx.secrets), "queue_id": queue_id} for message in new]
    if secret:
        for row in values:
            row["body"] = tx.secrets.encrypt(row["body"], always=True)
    tx.run_many(_ADD, values)


def several(tx: Tx, queue_id: str, ids: Sequence[str]) -> list[Message]:
    """Return those of the messages that exist, oldest first."""
    values = {"queue_id": queue_id, "ids": rows.dump(list(ids)), "at": rows.to_micros(tx.now)}
    return _MESSAGES.all(tx, _SEVERAL, values)


def seq(tx: Tx, queue_id: str, id: str) -> int | None:
    """Return the position of a message in its queue, or None."""
    seq: int | None = tx.scalar(_SEQ, {"queue_id": queue_id, "id": id})
    return seq


def newest(tx: Tx, queue_id: str) -> list[Message]:
    """Return a list with the newest message that is not delayed, or an empty list."""
    return _MESSAGES.all(tx, _NEWEST, {"queue_id": queue_id, "at": rows.to_micros(tx.now)})


def page(
    tx: Tx, queue_id: str, *, after: int = 0, limit: int, not_of: str | None = None, delayed: bool = False
) -> list[Message]:
    """
    Return at most ``limit`` messages with a position greater than ``after``, oldest first.

    ``not_of`` is the client whose own messages are excluded; ``delayed`` includes delayed messages.
    """
    values = {
        "queue_id": queue_id,
        "at": rows.to_micros(tx.now),
        "after": after,
        "limit": limit,
        "not_of": not_of or "no client",
        "due": _NEVER if delayed else rows.to_micros(tx.now),
    }
    return _MESSAGES.all(tx, _PAGE, values)


def pop(tx: Tx, queue_id: str, limit: int) -> list[Message]:
    """Remove and return the oldest messages. Two transactions never return the same message."""
    removed = _MESSAGES.all(tx, _OLDEST, {"queue_id": queue_id, "limit": limit, "at": rows.to_micros(tx.now)})
    if removed:
        tx.execute_fast(_DELETE, {"seqs": rows.dump([message.seq for message in removed])})
    return removed


def delete(tx: Tx, queue_id: str, ids: Sequence[str]) -> None:
    """Delete those of the messages that exist."""
    tx.execute_fast(_DELETE_NAMED, {"queue_id": queue_id, "ids": rows.dump(list(ids))})


def purge(tx: Tx, queue_id: str) -> None:
    """Delete all messages of a queue."""
    tx.execute_fast(_DELETE_ALL, {"queue_id": queue_id})


def trim(tx: Tx) -> None:
    """Delete a few expired messages of any queue."""
    tx.execute_fast(_TRIM, {"at": rows.to_micros(tx.now)})


def stats(tx: Tx, queue_id: str) -> Stats:
    """Return the number of messages in a queue, with the oldest and the newest one."""
    total, oldest, newest = tx.execute_fast(_STATS, {"queue_id": queue_id, "at": rows.to_micros(tx.now)})
    values = {"queue_id": queue_id, "oldest": oldest, "newest": newest}
    ends = {message.seq: message for message in _MESSAGES.all(tx, _ENDS, values)}
    return Stats(total=total, oldest=ends.get(oldest), newest=ends.get(newest))
