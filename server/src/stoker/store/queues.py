"""
Queries for queues, and for their messages and subscriptions. Expired ones are never returned, even while they are still
stored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from functools import partial

from stoker.model.embedded import Message, Queue, Subscription
from stoker.store import rows
from stoker.store.query import execute, put, scalar, table
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

QUEUES = Repository(Queue, "queues")
update = QUEUES.update
#: Insert a queue. Return False if the project has a queue with this name, which another transaction may insert.
add = partial(QUEUES.add, unless_exists=True)
_NAMED = QUEUES.select("project_id = :project_id AND name = :name")
#: Return queues after the one with a name, sorted by name, whose names contain a text: ``page(tx, project_id, marker,
#: part, limit)``. Not LIKE, which is case-sensitive on PostgreSQL only.
page: Callable[[Tx, str, str, str, int], list[Queue]] = QUEUES.lister(
    "project_id = :project_id AND name > :marker AND (CAST(:part AS text) = '' OR replace(name, :part, '') <> name)"
    " ORDER BY name LIMIT :limit"
)
count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM queues WHERE project_id = :project_id")
_EMPTY = [execute(f"DELETE FROM {table} WHERE queue_id = :queue_id") for table in ("messages", "subscriptions")]


def find(tx: Tx, project_id: str, name: str, *, for_update: bool = False) -> Queue | None:
    """Return the queue, or None; ``for_update`` locks its row."""
    return QUEUES.first(tx, _NAMED, {"project_id": project_id, "name": name}, for_update=for_update)


def delete(tx: Tx, id: str) -> None:
    """Delete the queue with its messages and subscriptions."""
    QUEUES.delete(tx, id)
    for empty in _EMPTY:
        empty(tx, id)


_MESSAGES = Repository(Message, "messages")
_HERE = "queue_id = :queue_id AND expires_at > :now"
#: Return those of the messages that exist, oldest first.
several_messages: Callable[[Tx, str, Sequence[str]], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND id @in(ids) ORDER BY seq"
)
#: Return the position of a message in its queue, or None.
message_seq: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM messages WHERE queue_id = :queue_id AND id = :id"
)
_list_messages: Callable[[Tx, str, int, str, datetime | int, int], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND seq > :after AND coalesce(client_id, '') <> :not_of AND delayed_until <= :due"
    " ORDER BY seq LIMIT :limit"
)
#: Return a list with the newest message of a queue that is not delayed, or an empty list.
newest_message: Callable[[Tx, str], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND delayed_until <= :now ORDER BY seq DESC LIMIT 1"
)
#: Messages that another transaction is removing are skipped; the statement does not wait for them.
_lock_oldest: Callable[[Tx, str, int], list[Message]] = _MESSAGES.lister(
    f"{_HERE} AND delayed_until <= :now ORDER BY seq LIMIT :limit @for_update @skip_locked"
)
_delete_popped: Callable[[Tx, Iterable[int | None]], None] = execute("DELETE FROM messages WHERE seq @in_numbers(seqs)")
#: Delete those of the messages that exist.
delete_messages: Callable[[Tx, str, Sequence[str]], None] = execute(
    "DELETE FROM messages WHERE queue_id = :queue_id AND id @in(ids)"
)
#: Delete all messages of a queue.
purge_messages: Callable[[Tx, str], None] = execute("DELETE FROM messages WHERE queue_id = :queue_id")
#: Delete a few expired messages of any queue. They never accumulate: the limit exceeds the messages of one post.
trim_messages: Callable[[Tx], None] = execute(
    "DELETE FROM messages WHERE seq IN"
    " (SELECT seq FROM messages WHERE expires_at <= :now ORDER BY expires_at LIMIT 50 @for_update @skip_locked)"
)
#: Later than any time.
_NEVER = 2**62


def add_messages(tx: Tx, queue_id: str, new: Sequence[Message], *, secret: bool = False) -> None:
    """
    Append messages to a queue, in this order. The caller has locked the queue.

    ``secret`` states that the messages may contain secrets, so they are always encrypted.
    """
    for message in new:
        _MESSAGES.add(tx, message, encrypt=("body",) if secret else (), later=True, queue_id=queue_id)


def page_messages(
    tx: Tx, queue_id: str, *, after: int = 0, limit: int, not_of: str | None = None, delayed: bool = False
) -> list[Message]:
    """
    Return at most ``limit`` messages with a position greater than ``after``, oldest first.

    ``not_of`` is the client whose own messages are excluded; ``delayed`` includes delayed messages.
    """
    return _list_messages(tx, queue_id, after, not_of or "no client", _NEVER if delayed else tx.now, limit)


def pop_messages(tx: Tx, queue_id: str, limit: int) -> list[Message]:
    """Remove and return the oldest messages. Two transactions never return the same message."""
    removed = _lock_oldest(tx, queue_id, limit)
    if removed:
        _delete_popped(tx, [message.seq for message in removed])
    return removed


_SUBSCRIPTIONS = Repository(Subscription, "subscriptions", fixed=("queue_id",))

_ALIVE = _SUBSCRIPTIONS.select(f"{_HERE} AND id = :id")
_find_subscriber: Callable[[Tx, str, str], Subscription | None] = _SUBSCRIPTIONS.finder(f"{_HERE} AND digest = :digest")
_set_digest: Callable[[Tx, str, str], None] = put("UPDATE subscriptions SET digest = :digest WHERE id = :id")
_BY_ID = sql(
    f"SELECT {_SUBSCRIPTIONS.columns}, queues.project_id FROM subscriptions"
    " JOIN queues ON queues.id = subscriptions.queue_id WHERE subscriptions.id = :id AND expires_at > :now"
)
#: Return the position of a subscription in the list of its queue, or None.
subscription_seq: Callable[[Tx, str, str], int | None] = scalar(
    "SELECT seq FROM subscriptions WHERE queue_id = :queue_id AND id = :id"
)
#: Return subscriptions of a queue with greater positions, oldest first: ``page_subscriptions(tx, queue_id, after,
#: limit)``.
page_subscriptions: Callable[[Tx, str, int, int], list[Subscription]] = _SUBSCRIPTIONS.lister(
    f"{_HERE} AND seq > :after ORDER BY seq LIMIT :limit"
)
#: Return the position of the last subscription of a queue, or None.
latest_subscription: Callable[[Tx, str], int | None] = scalar(f"SELECT max(seq) FROM subscriptions WHERE {_HERE}")
#: Return (position, id) of subscriptions with positions after ``after`` up to ``upto``:
#: ``subscription_ids(tx, queue_id, after, upto, limit)``.
subscription_ids: Callable[[Tx, str, int, int, int], list[tuple[int, str]]] = table(
    f"SELECT seq, id FROM subscriptions WHERE {_HERE} AND seq > :after AND seq <= :upto ORDER BY seq LIMIT :limit"
)
delete_subscription: Callable[[Tx, str, str], None] = execute(
    "DELETE FROM subscriptions WHERE queue_id = :queue_id AND id = :id"
)
_drop_expired: Callable[[Tx, str, str], None] = execute(
    "DELETE FROM subscriptions WHERE queue_id = :queue_id AND digest = :digest AND expires_at <= :now"
)
_drop_some_expired: Callable[[Tx], None] = execute(
    "DELETE FROM subscriptions WHERE seq IN"
    " (SELECT seq FROM subscriptions WHERE expires_at <= :now ORDER BY expires_at LIMIT 10 @for_update @skip_locked)"
)


def add_subscription(tx: Tx, new: Subscription) -> bool:
    """Insert a subscription. Return False if the queue has a subscription with this subscriber."""
    return _SUBSCRIPTIONS.add(tx, new, unless_exists=True, digest=_digest(new.subscriber))


def save_subscription(tx: Tx, changed: Subscription) -> None:
    """Write the changeable columns of a subscription."""
    _set_digest(tx, _digest(changed.subscriber), changed.id)
    _SUBSCRIPTIONS.save(tx, changed)


def find_subscriber(tx: Tx, queue_id: str, subscriber: str) -> Subscription | None:
    """Return the queue's subscription with this subscriber, or None."""
    return _find_subscriber(tx, queue_id, _digest(subscriber))


def find_subscription(tx: Tx, queue_id: str, id: str, *, for_update: bool = False) -> Subscription | None:
    """Return the subscription, or None; ``for_update`` locks its row."""
    values = {"queue_id": queue_id, "id": id, "now": rows.to_micros(tx.now)}
    return _SUBSCRIPTIONS.first(tx, _ALIVE, values, for_update=for_update)


def subscription_with_project(tx: Tx, id: str) -> tuple[Subscription, str] | None:
    """Return (subscription, project id of its queue), or None."""
    row = tx.execute_fast(_BY_ID, {"id": id, "now": rows.to_micros(tx.now)})
    return None if row is None else (_SUBSCRIPTIONS.decode(row, tx.secrets), row[-1])


def trim_subscriptions(tx: Tx, queue_id: str, subscriber: str) -> None:
    """Delete a few expired subscriptions of any queue, and an expired one with this subscriber."""
    _drop_some_expired(tx)
    _drop_expired(tx, queue_id, _digest(subscriber))


def _digest(subscriber: str) -> str:
    return hashlib.sha256(subscriber.encode()).hexdigest()
