"""Queries for messages. Expired messages are never returned, even while they are still stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from stoker.model.messaging import Message
from stoker.store.query import execute, scalar
from stoker.store.repository import Repository
from stoker.store.tx import Tx

_MESSAGES = Repository(Message, "messages")
_HERE = "queue_id = :queue_id AND expires_at > :now"
#: Return those of the messages that exist, oldest first.
several: Callable[[Tx, str, Sequence[str]], list[Message]] = _MESSAGES.lister(f"{_HERE} AND id @in(ids) ORDER BY seq")
#: Return the position of a message in its queue, or None.
seq: Callable[[Tx, str, str], int | None] = scalar("SELECT seq FROM messages WHERE queue_id = :queue_id AND id = :id")
_list_after: Callable[[Tx, str, int, str, datetime | int, int], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND seq > :after AND coalesce(client_id, '') <> :not_of AND delayed_until <= :due"
    " ORDER BY seq LIMIT :limit"
)
#: Return a list with the newest message of a queue that is not delayed, or an empty list.
newest: Callable[[Tx, str], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND delayed_until <= :now ORDER BY seq DESC LIMIT 1"
)
#: Messages that another transaction is removing are skipped; the statement does not wait for them.
_lock_oldest: Callable[[Tx, str, int], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND delayed_until <= :now ORDER BY seq LIMIT :limit @for_update @skip_locked"
)
_delete_all: Callable[[Tx, Iterable[int | None]], None] = execute("DELETE FROM messages WHERE seq @in_numbers(seqs)")
#: Delete those of the messages that exist.
delete: Callable[[Tx, str, Sequence[str]], None] = execute(
    "DELETE FROM messages WHERE queue_id = :queue_id AND id @in(ids)"
)
#: Delete all messages of a queue.
purge: Callable[[Tx, str], None] = execute("DELETE FROM messages WHERE queue_id = :queue_id")
#: Delete a few expired messages of any queue. They never accumulate: the limit exceeds the messages of one post.
trim: Callable[[Tx], None] = execute(
    "DELETE FROM messages WHERE seq IN"
    " (SELECT seq FROM messages WHERE expires_at <= :now ORDER BY expires_at LIMIT 50 @for_update @skip_locked)"
)
#: Later than any time.
_NEVER = 2**62


def add(tx: Tx, queue_id: str, new: Sequence[Message], *, secret: bool = False) -> None:
    """
    Append messages to a queue, in this order. The caller has locked the queue.

    ``secret`` states that the messages may contain secrets, so they are always encrypted.
    """
    for message in new:
        _MESSAGES.add(tx, message, encrypt=("body",) if secret else (), later=True, queue_id=queue_id)


def page(
    tx: Tx, queue_id: str, *, after: int = 0, limit: int, not_of: str | None = None, delayed: bool = False
) -> list[Message]:
    """
    Return at most ``limit`` messages with a position greater than ``after``, oldest first.

    ``not_of`` is the client whose own messages are excluded; ``delayed`` includes delayed messages.
    """
    return _list_after(tx, queue_id, after, not_of or "no client", _NEVER if delayed else tx.now, limit)


def pop(tx: Tx, queue_id: str, limit: int) -> list[Message]:
    """Remove and return the oldest messages. Two transactions never return the same message."""
    removed = _lock_oldest(tx, queue_id, limit)
    if removed:
        _delete_all(tx, [message.seq for message in removed])
    return removed
