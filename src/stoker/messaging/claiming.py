"""Taking messages, so that no two get the same one: for good, or for a while."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from stoker.messaging import checks, metadata
from stoker.model.errors import EntityNotFound
from stoker.model.messaging import Claim, Message, Queue
from stoker.store import claims, messages, queues
from stoker.store.tx import Tx


def hold_or_create(tx: Tx, project_id: str, name: str, owner: str | None = None) -> Queue:
    """The queue, held until the transaction ends. Raises Invalid for what is no name of one."""
    found = queues.find(tx, project_id, name, hold=True)
    while found is None:
        new = Queue(
            id=uuid.uuid4().hex,
            project_id=project_id,
            name=checks.queue_name(name),
            metadata={},
            owner=owner,
            created_at=tx.now,
        )
        # Another may make it, or delete it, in between.
        found = new if queues.add(tx, new) else queues.find(tx, project_id, name, hold=True)
    return found


def take(tx: Tx, queue: Queue, limit: int) -> list[Message]:
    """
    The oldest that nobody holds, for this transaction alone. Those that were claimed as often as the queue allows go
    to its dead letters instead.
    """
    found = messages.take(tx, queue.id, limit)
    most, letters = queue.metadata.get(metadata.MOST_CLAIMS), queue.metadata.get(metadata.DEAD_LETTER_QUEUE)
    if most is None or letters is None:
        return found
    dead = [each for each in found if each.claim_count >= most]
    if dead:
        _bury(tx, queue, letters, dead)
    return [each for each in found if each.claim_count < most]


def claim(tx: Tx, queue: Queue, *, ttl: int, grace: int, limit: int) -> tuple[Claim, list[Message]] | None:
    """
    Hold up to ``limit`` messages for ``ttl`` seconds; None when there is none to hold. They live until ``grace``
    seconds after the claim's end at least, if they would not outlive it.
    """
    found = take(tx, queue, limit)
    if not found:
        return None
    claims.trim(tx)
    until = tx.now + timedelta(seconds=ttl)
    made = Claim(id=str(uuid.uuid4()), queue_id=queue.id, ttl=ttl, renewed_at=tx.now, expires_at=until)
    claims.add(tx, made)
    _hold(tx, made, found, grace, more=1)
    return made, messages.of_claim(tx, queue.id, made.id)


def renew(tx: Tx, queue: Queue, id: str, *, ttl: int, grace: int) -> None:
    """Have the claim end ``ttl`` seconds from now. Raises EntityNotFound when it is over."""
    found = claims.find(tx, queue.id, id, hold=True)
    if found is None:
        raise EntityNotFound(f"there is no claim {id!r:.100} in the queue {queue.name!r}, or it is over")
    until = tx.now + timedelta(seconds=ttl)
    claims.renew(tx, id, ttl=ttl, at=tx.now, until=until)
    held = messages.of_claim(tx, queue.id, id, hold=True)
    if held:
        _hold(tx, replace(found, expires_at=until, ttl=ttl), held, grace, more=0)


def release(tx: Tx, queue: Queue, id: str) -> None:
    """What it held is free again. One that is over is released already."""
    claims.delete(tx, queue.id, id)
    messages.release(tx, queue.id, id)


def _hold(tx: Tx, claim: Claim, held: Sequence[Message], grace: int, *, more: int) -> None:
    messages.claim(
        tx,
        held,
        claim.id,
        until=claim.expires_at,
        ttl=claim.ttl + grace,
        expires_at=claim.expires_at + timedelta(seconds=grace),
        more=more,
    )


def _bury(tx: Tx, queue: Queue, letters: str, dead: Sequence[Message]) -> None:
    """Move them, with their ids, behind all that are there."""
    ttl = queue.metadata.get(metadata.DEAD_LETTER_TTL)
    there = hold_or_create(tx, queue.project_id, letters)
    messages.delete(tx, dead)
    if ttl is not None:
        dead = [replace(each, ttl=ttl, expires_at=tx.now + timedelta(seconds=ttl)) for each in dead]
    messages.add(tx, there.id, dead)
