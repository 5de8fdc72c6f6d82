"""The interface of the messaging service for the rest of Stoker."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from stoker.messaging import limits, webhooks
from stoker.messaging.signed_urls import SignedUrls
from stoker.messaging.subscription_service import SubscriptionService
from stoker.model.embedded import Message, Queue, check_write
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import queues, rows
from stoker.store.tx import Tx
from stoker.work import Work

#: Arguments: the transaction, the project's id, the queue's name, the messages that are about to be stored. Returns
#: False if they must not be stored.
Listener = Callable[[Tx, str, str, Sequence[Message]], bool]
#: Without a delay, a message is visible to every reader: a transaction that began before the post, or a process whose
#: clock is behind, might otherwise miss the message and continue after a later one.
_NO_DELAY = datetime.fromtimestamp(0, UTC)


class Draft(msgspec.Struct):
    """A message that a client posts. ``ttl`` and ``delay`` are in seconds; None: the queue's default."""

    body: Any
    ttl: Annotated[int, Meta(ge=limits.SHORTEST_TTL, le=limits.LONGEST_TTL)] | None = None
    delay: Annotated[int, Meta(ge=0, le=limits.LONGEST_DELAY)] | None = None


class Messaging:
    """
    Queues by project and name. Every method acts within the given transaction.

    Each method raises WriteRefused if the queue belongs to a server or deployment, unless ``as_owner`` is set or an
    ``owner`` is given, the id of the resource or server that needs the queue.

    ``on_posted`` is called for messages that clients post, not for Stoker's own messages. The call happens in
    the posting transaction before the queue is locked, so that the callback can take locks that precede the queue. An
    exception of the callback is returned to the client, and nothing is stored.
    """

    def __init__(
        self,
        work: Work,
        subscriptions: SubscriptionService,
        signed_urls: SignedUrls,
        on_posted: Listener | None = None,
    ) -> None:
        self._on_posted = on_posted
        self.subscriptions = subscriptions
        #: Of queues of the projects, for their users.
        self.signed_urls = signed_urls
        self._work = work

    def create_queue(
        self, tx: Tx, project_id: str, name: str, entries: Mapping[str, Any] | None = None, *, owner: str | None = None
    ) -> bool:
        """
        Create a queue. Returns False if the queue exists already; an existing queue stays unchanged.

        With an ``owner``, the new queue replaces a queue of that name that a user created. Raises Invalid for an
        invalid name or invalid metadata.
        """
        new = _new_queue(tx, project_id, name, entries or {}, owner)
        if queues.add(tx, new):
            return True
        existing = queues.find(tx, project_id, name, for_update=owner is not None)
        if existing is None:
            return queues.add(tx, new)  # deleted by another transaction meanwhile
        if owner is not None and existing.owner is None:
            queues.delete(tx, existing.id)
            return queues.add(tx, new)
        check_write(existing, as_owner=owner is not None)
        return False

    def delete_queue(self, tx: Tx, project_id: str, name: str, *, as_owner: bool = False) -> None:
        """Delete a queue with its messages and subscriptions; does nothing if it does not exist."""
        queue = _lock(tx, project_id, name, as_owner=as_owner)
        if queue is not None:
            queues.delete(tx, queue.id)

    def update_metadata(
        self, tx: Tx, project_id: str, name: str, values: Mapping[str, Any | msgspec.UnsetType]
    ) -> dict[str, Any]:
        """Set metadata by name; UNSET removes a name. Returns all metadata. Raises EntityNotFound, Invalid."""
        queue = _lock(tx, project_id, name, as_owner=False)
        if queue is None:
            raise EntityNotFound(f"there is no queue {name!r:.100} in this project")
        changed = {key: value for key, value in {**queue.metadata, **values}.items() if value is not msgspec.UNSET}
        queues.update(tx, queue.id, metadata=limits.check_metadata(changed))
        return changed

    def post(
        self,
        tx: Tx,
        project_id: str,
        queue: str,
        bodies: Sequence[Any],
        *,
        ttl: int = limits.MESSAGE_TTL,
        owner: str | None = None,
    ) -> Sequence[str]:
        """
        Post messages of Stoker's own and notify subscribers. Returns the messages' ids.

        A missing queue is created for ``owner``.
        """
        new = [_message(tx.now, body, ttl, 0, None) for body in bodies]
        return self._store(tx, project_id, queue, new, owner, owner is not None)

    def receive(
        self,
        tx: Tx,
        project_id: str,
        queue: str,
        drafts: Sequence[Draft],
        *,
        size: int,
        client_id: str | None = None,
        as_owner: bool = False,
    ) -> Sequence[str]:
        """
        Post messages from a client's request. Returns the messages' ids.

        ``size`` is the length of the request's body in bytes. Raises Invalid if the queue does not accept this size.
        """
        existing = queues.find(tx, project_id, queue)
        if existing is not None:
            check_write(existing, as_owner=as_owner)  # before the callback takes the message for a signal
        options = limits.add_defaults(existing.metadata if existing else {})
        most = options[limits.POST_SIZE_KEY]
        if size > most:
            raise Invalid(f"the messages are too large for this queue: {size} bytes, more than the limit of {most}")
        new = [_received(tx.now, draft, options, client_id) for draft in drafts]
        if self._on_posted is not None and not self._on_posted(tx, project_id, queue, new):
            return [message.id for message in new]
        return self._store(tx, project_id, queue, new, None, as_owner)

    def pop(self, tx: Tx, project_id: str, queue: str, limit: int = 1, *, as_owner: bool = False) -> list[Message]:
        """
        Remove and return the oldest messages; an empty list if the queue does not exist.

        A queue with ``_keep_newest`` returns its newest message on each call and keeps it.
        """
        existing = queues.find(tx, project_id, queue)
        if existing is None:
            return []
        check_write(existing, as_owner=as_owner)
        if existing.metadata.get(limits.KEEP_NEWEST):
            return queues.newest_message(tx, existing.id)
        return queues.pop_messages(tx, existing.id, limit)

    def purge(self, tx: Tx, project_id: str, queue: str, *, as_owner: bool = False) -> None:
        """Delete all messages of a queue."""
        existing = _lock(tx, project_id, queue, as_owner=as_owner)
        if existing is not None:
            queues.purge_messages(tx, existing.id)

    def lock_or_create(
        self, tx: Tx, project_id: str, name: str, owner: str | None = None, *, as_owner: bool = False
    ) -> Queue:
        """
        Lock the queue until the transaction ends, so that messages have the order of the commits; create a missing
        queue. Raises Invalid for an invalid name.
        """
        queue = queues.find(tx, project_id, name, for_update=True)
        while queue is None:
            new = _new_queue(tx, project_id, name, {}, owner)
            # Another transaction may create or delete the queue in between.
            queue = new if queues.add(tx, new) else queues.find(tx, project_id, name, for_update=True)
        check_write(queue, as_owner=as_owner or owner is not None)
        return queue

    def _store(
        self, tx: Tx, project_id: str, name: str, new: Sequence[Message], owner: str | None, as_owner: bool
    ) -> Sequence[str]:
        queue = self.lock_or_create(tx, project_id, name, owner, as_owner=as_owner)
        queues.trim_messages(tx)
        queues.add_messages(tx, queue.id, new, secret=queue.owner is not None)
        webhooks.announce(tx, self._work, queue, new)
        return [message.id for message in new]


def _new_queue(tx: Tx, project_id: str, name: str, entries: Mapping[str, Any], owner: str | None) -> Queue:
    return Queue(
        id=uuid.uuid4().hex,
        project_id=project_id,
        name=limits.check_name(name),
        metadata=limits.check_metadata(entries),
        owner=owner,
        created_at=tx.now,
    )


def _lock(tx: Tx, project_id: str, name: str, *, as_owner: bool) -> Queue | None:
    queue = queues.find(tx, project_id, name, for_update=True)
    if queue is not None:
        check_write(queue, as_owner=as_owner)
    return queue


def _received(now: datetime, draft: Draft, options: Mapping[str, Any], client_id: str | None) -> Message:
    """Return the message of a draft, which has the queue's options where it sets none."""
    ttl = options[limits.TTL_KEY] if draft.ttl is None else draft.ttl
    delay = options[limits.DELAY_KEY] if draft.delay is None else draft.delay
    return _message(now, draft.body, ttl, delay, client_id)


def _message(now: datetime, body: Any, ttl: int, delay: int, client_id: str | None) -> Message:
    digest = hashlib.md5(json.dumps(body).encode(), usedforsecurity=False).hexdigest()
    return Message(
        id=str(uuid.uuid4()),
        body=rows.dump(body),
        ttl=ttl,
        created_at=now,
        expires_at=now + timedelta(seconds=ttl),
        delayed_until=now + timedelta(seconds=delay) if delay else _NO_DELAY,
        checksum=f"MD5:{digest}",
        client_id=client_id,
    )
