"""Taking messages from a queue exclusively: permanently, or for the time of a claim."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from stoker.messaging import checks, metadata
from stoker.model.errors import EntityNotFound
from stoker.model.messaging import Claim, Message, Queue
from stoker.model.ownership import check_write
from stoker.store import claims, messages, queues
from stoker.store.tx import Tx


def lock_or_create(tx: Tx, project_id: str, name: str, owner: str | None = None, *, as_owner: bool = False) -> Queue:
    """
    Lock the queue until the transaction ends; create it if it is missing.

    Raises Invalid for an invalid name, and WriteRefused.
    """
    queue = queues.find(tx, project_id, name, for_update=True)
    while queue is None:
        new = Queue(
            id=uuid.uuid4().hex,
            project_id=project_id,
            name=checks.queue_name(name),
            metadata={},
            owner=owner,
            created_at=tx.now,
        )
        # Another transaction may create or delete the queue in between.
        queue = new if queues.add(tx, new) else queues.find(tx, project_id, name, for_update=True)
    check_write(queue, as_owner=as_owner)
    return queue


def take(tx: Tx, queue: Queue, limit: int) -> list[Message]:
    """
    Lock and return the oldest unclaimed messages for this transaction.

    Messages that reached the queue's maximum number of claims are moved to its dead letter queue instead.
    """
    oldest = messages.take(tx, queue.id, limit)
    most, letters = queue.metadata.get(metadata.MOST_CLAIMS), queue.metadata.get(metadata.DEAD_LETTER_QUEUE)
    if most is None or letters is None:
        return oldest
    dead = [message for message in oldest if message.claim_count >= most]
    if dead:
        _bury(tx, queue, letters, dead)
    return [message for message in oldest if message.claim_count < most]


def claim(tx: Tx, queue: Queue, *, ttl: int, grace: int, limit: int) -> tuple[Claim, list[Message]] | None:
    """
    Claim up to ``limit`` messages for ``ttl`` seconds; None if no message is available.

    If a message would expire earlier, its life is extended to ``grace`` seconds after the end of the claim.
    """
    free = take(tx, queue, limit)
    if not free:
        return None
    claims.trim(tx)
    until = tx.now + timedelta(seconds=ttl)
    created = Claim(id=str(uuid.uuid4()), queue_id=queue.id, ttl=ttl, renewed_at=tx.now, expires_at=until)
    claims.add(tx, created)
    _hold(tx, created, free, grace, more=1)
    return created, messages.of_claim(tx, queue.id, created.id)


def renew(tx: Tx, queue: Queue, id: str, *, ttl: int, grace: int) -> None:
    """Extend the claim to ``ttl`` seconds from now. Raises EntityNotFound if the claim has ended."""
    old = claims.find(tx, queue.id, id, for_update=True)
    if old is None:
        raise EntityNotFound(f"there is no claim {id!r:.100} in the queue {queue.name!r}, or it has ended")
    until = tx.now + timedelta(seconds=ttl)
    claims.renew(tx, id, ttl=ttl, at=tx.now, until=until)
    claimed = messages.of_claim(tx, queue.id, id, for_update=True)
    if claimed:
        _hold(tx, replace(old, expires_at=until, ttl=ttl), claimed, grace, more=0)


def release(tx: Tx, queue: Queue, id: str) -> None:
    """Release the claim's messages. Does nothing if the claim has ended."""
    claims.delete(tx, queue.id, id)
    messages.release(tx, queue.id, id)


def _hold(tx: Tx, claim: Claim, claimed: Sequence[Message], grace: int, *, more: int) -> None:
    messages.claim(
        tx,
        claimed,
        claim.id,
        until=claim.expires_at,
        ttl=claim.ttl + grace,
        expires_at=claim.expires_at + timedelta(seconds=grace),
        more=more,
    )


def _bury(tx: Tx, queue: Queue, letters: str, dead: Sequence[Message]) -> None:
    """Move the messages, with their ids, to the end of the dead letter queue."""
    ttl = queue.metadata.get(metadata.DEAD_LETTER_TTL)
    there = lock_or_create(tx, queue.project_id, letters)
    messages.delete(tx, dead)
    if ttl is not None:
        dead = [replace(message, ttl=ttl, expires_at=tx.now + timedelta(seconds=ttl)) for message in dead]
    messages.add(tx, there.id, dead)
