"""What the rest of Stoker uses of the messaging service."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stoker.messaging import checks, claiming, drafts, limits, webhooks
from stoker.messaging import metadata as reserved
from stoker.messaging.subscribing import Subscribing
from stoker.model.errors import EntityNotFound
from stoker.model.messaging import Message, Queue
from stoker.store import messages, queues, subscriptions
from stoker.store.tx import Tx
from stoker.work import Work

#: (the transaction, the project's id, the queue's name, what is about to be stored there)
Listener = Callable[[Tx, str, str, Sequence[Message]], None]


class Messaging:
    """
    Queues by project and name. Every function works inside the transaction that it is given.

    ``on_posted``, if it is set, hears what clients post, inside their transaction and before the queue is held, so that
    it may take whatever locks it needs; what it raises, the client gets, and nothing is stored. What Stoker itself
    posts it does not hear.
    """

    def __init__(self, work: Work, subscribing: Subscribing) -> None:
        self.on_posted: Listener | None = None
        self.subscribing = subscribing
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
        False when there is one of that name, which stays as it is. ``owner``: the id of the resource or server that it
        is made for. Raises Invalid for a name or metadata that no queue can have.
        """
        new = Queue(
            id=uuid.uuid4().hex,
            project_id=project_id,
            name=checks.queue_name(name),
            metadata=reserved.checked({} if metadata is None else dict(metadata)),
            owner=owner,
            created_at=tx.now,
        )
        return queues.add(tx, new)

    def delete_queue(self, tx: Tx, project_id: str, name: str) -> None:
        """With its messages, claims and subscriptions. One that is not there is deleted already."""
        queue = queues.find(tx, project_id, name, hold=True)
        if queue is not None:
            queues.delete(tx, queue.id)

    def patch_queue(self, tx: Tx, project_id: str, name: str, changes: Any) -> dict[str, Any]:
        """The new metadata, after a JSON patch. Raises EntityNotFound, Invalid, Conflict."""
        queue = queues.find(tx, project_id, name, hold=True)
        if queue is None:
            raise EntityNotFound(f"there is no queue {name!r} in this project")
        changed = reserved.patched(queue.metadata, changes)
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
        """The new messages' ids. The queue is made if need be, for ``owner``; subscribers are told."""
        return self._store(tx, project_id, queue, drafts.drafted(tx.now, bodies, ttl=ttl), owner)

    def receive(
        self, tx: Tx, project_id: str, queue: str, said: Any, *, size: int, client_id: str | None = None
    ) -> Sequence[str]:
        """Take what a client posts, a request's body of ``size`` bytes; the new messages' ids. Raises Invalid."""
        known = queues.find(tx, project_id, queue)
        of_queue = known.metadata if known else {}
        new = drafts.read(tx.now, said, of_queue, size=size, client_id=client_id)
        if self.on_posted is not None:
            self.on_posted(tx, project_id, queue, new)
        return self._store(tx, project_id, queue, new, None)

    def pop(self, tx: Tx, project_id: str, queue: str, limit: int = 1) -> list[Message]:
        """
        The oldest that nobody holds, gone from the queue: nobody else gets them. None, if there is no such queue.

        A queue that keeps its newest message gives that one, whoever has had it before.
        """
        known = queues.find(tx, project_id, queue)
        if known is None:
            return []
        if known.metadata.get(reserved.KEEP_NEWEST):
            return messages.newest(tx, known.id)
        found = claiming.take(tx, known, limit)
        messages.delete(tx, found)
        return found

    def purge(self, tx: Tx, project_id: str, queue: str, kinds: Sequence[str] = ("messages",)) -> None:
        """Empty it of messages, of subscriptions or of both."""
        known = queues.find(tx, project_id, queue, hold=True)
        if known is None:
            return
        if "messages" in kinds:
            messages.purge(tx, known.id)
        if "subscriptions" in kinds:
            subscriptions.purge(tx, known.id)

    def hold_or_create(self, tx: Tx, project_id: str, name: str, owner: str | None = None) -> Queue:
        """Held until the transaction ends, so that what is stored there has the order in which it is committed."""
        return claiming.hold_or_create(tx, project_id, name, owner)

    def _store(self, tx: Tx, project_id: str, name: str, new: Sequence[Message], owner: str | None) -> Sequence[str]:
        queue = self.hold_or_create(tx, project_id, name, owner)
        messages.trim(tx)
        messages.add(tx, queue.id, new)
        webhooks.announce(tx, self._work, queue, new, confirming=self.subscribing.confirming)
        return [each.id for each in new]
