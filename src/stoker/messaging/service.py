"""The interface of the messaging service for the rest of Stoker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stoker.messaging import checks, claim_operations, drafts, limits, webhooks
from stoker.messaging import metadata as reserved
from stoker.messaging.drafts import Draft
from stoker.messaging.subscription_service import SubscriptionService
from stoker.model.errors import EntityNotFound
from stoker.model.messaging import Message, Queue
from stoker.model.ownership import check_write
from stoker.store import messages, queues, subscriptions
from stoker.store.tx import Tx
from stoker.work import Work

#: Arguments: the transaction, the project's id, the queue's name, the messages that are about to be stored.
Listener = Callable[[Tx, str, str, Sequence[Message]], None]


class Messaging:
    """
    Queues by project and name. Every method acts within the given transaction.

    ``on_posted`` is called for messages that clients post, not for Stoker's own messages. The call happens in
    the posting transaction before the queue is locked, so that the callback can take locks that precede the queue. An
    exception of the callback is returned to the client, and nothing is stored.
    """

    def __init__(self, work: Work, subscriptions: SubscriptionService, on_posted: Listener | None = None) -> None:
        self._on_posted = on_posted
        self.subscriptions = subscriptions
        self._work = work

    def create_queue(
        self,
        tx: Tx,
        project_id: str,
        name: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        owner: str | None = None,
    ) -> bool:
        """
        Create a queue. Returns False if the queue exists already; an existing queue stays unchanged.

        ``owner`` is the id of the resource or server that needs the queue; it replaces a queue of that name that a user
        created. Raises Invalid for an invalid name or invalid metadata, and WriteRefused if the queue belongs to a
        server or deployment and no ``owner`` is given.
        """
        new = Queue(
            id=uuid.uuid4().hex,
            project_id=project_id,
            name=checks.queue_name(name),
            metadata=reserved.check_metadata({} if metadata is None else dict(metadata)),
            owner=owner,
            created_at=tx.now,
        )
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
        """
        Delete a queue with its messages, claims and subscriptions; does nothing if it does not exist. Raises
        WriteRefused.
        """
        queue = queues.find(tx, project_id, name, for_update=True)
        if queue is not None:
            check_write(queue, as_owner=as_owner)
            queues.delete(tx, queue.id)

    def patch_queue(self, tx: Tx, project_id: str, name: str, changes: Any) -> dict[str, Any]:
        """Apply a JSON patch. Returns the new metadata. Raises EntityNotFound, Invalid, Conflict, WriteRefused."""
        queue = queues.find(tx, project_id, name, for_update=True)
        if queue is None:
            raise EntityNotFound(f"there is no queue {name!r} in this project")
        check_write(queue, as_owner=False)
        changed = reserved.apply_patch(queue.metadata, changes)
        queues.save_metadata(tx, queue.id, changed)
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

        A missing queue is created for ``owner``. Raises WriteRefused if the queue belongs to a server or deployment and
        no ``owner`` is given.
        """
        return self._store(
            tx, project_id, queue, drafts.create_drafts(tx.now, bodies, ttl=ttl), owner, owner is not None
        )

    def receive(
        self,
        tx: Tx,
        project_id: str,
        queue: str,
        posted: Sequence[Draft],
        *,
        size: int,
        client_id: str | None = None,
        as_owner: bool = False,
    ) -> Sequence[str]:
        """
        Post messages from a client's request. Returns the messages' ids.

        ``size`` is the length of the request's body in bytes. Raises Invalid, WriteRefused.
        """
        existing = queues.find(tx, project_id, queue)
        if existing is not None:
            check_write(existing, as_owner=as_owner)  # before the callback takes the message for a signal
        of_queue = existing.metadata if existing else {}
        new = drafts.read(tx.now, posted, of_queue, size=size, client_id=client_id)
        if self._on_posted is not None:
            self._on_posted(tx, project_id, queue, new)
        return self._store(tx, project_id, queue, new, None, as_owner)

    def pop(self, tx: Tx, project_id: str, queue: str, limit: int = 1, *, as_owner: bool = False) -> list[Message]:
        """
        Remove and return the oldest unclaimed messages; an empty list if the queue does not exist.

        A queue with ``_keep_newest`` returns its newest message on each call and keeps it. Raises WriteRefused.
        """
        existing = queues.find(tx, project_id, queue)
        if existing is None:
            return []
        check_write(existing, as_owner=as_owner)
        if existing.metadata.get(reserved.KEEP_NEWEST):
            return messages.newest(tx, existing.id)
        oldest = claim_operations.take(tx, existing, limit)
        messages.delete(tx, oldest)
        return oldest

    def purge(
        self,
        tx: Tx,
        project_id: str,
        queue: str,
        kinds: Sequence[str] = ("messages",),
        *,
        as_owner: bool = False,
    ) -> None:
        """Delete all messages of a queue, all subscriptions, or both. Raises WriteRefused."""
        existing = queues.find(tx, project_id, queue, for_update=True)
        if existing is None:
            return
        check_write(existing, as_owner=as_owner)
        if "messages" in kinds:
            messages.purge(tx, existing.id)
        if "subscriptions" in kinds:
            subscriptions.purge(tx, existing.id)

    def lock_or_create(self, tx: Tx, project_id: str, name: str, owner: str | None = None) -> Queue:
        """
        Lock the queue until the transaction ends, so that messages have the order of the commits; create a missing
        queue.

        Raises WriteRefused if the queue belongs to a server or deployment and no ``owner`` is given.
        """
        return claim_operations.lock_or_create(tx, project_id, name, owner, as_owner=owner is not None)

    def _store(
        self, tx: Tx, project_id: str, name: str, new: Sequence[Message], owner: str | None, as_owner: bool
    ) -> Sequence[str]:
        queue = claim_operations.lock_or_create(tx, project_id, name, owner, as_owner=as_owner)
        messages.trim(tx)
        messages.add(tx, queue.id, new, secret=queue.owner is not None)
        webhooks.announce(tx, self._work, queue, new, confirming=self.subscriptions.confirming)
        return [message.id for message in new]
