"""Deletes messages by id, respecting claims."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.errors import Forbidden, Invalid
from stoker.model.messaging import Queue
from stoker.store import claims, messages
from stoker.store.tx import Tx


def one(tx: Tx, queue: Queue, id: str, claim_id: str | None) -> None:
    """
    Delete one message; does nothing if it does not exist.

    Raises Forbidden if another claim holds the message, Invalid if the claim has ended or does not hold the message.
    """
    stored = messages.several(tx, queue.id, [id], for_update=True)
    if not stored:
        return
    holder = stored[0].claim_id
    if claim_id is None and holder is not None:
        raise Forbidden(f"the message {id!r:.100} is claimed: give the claim's id to delete it")
    if claim_id is not None and holder is None:
        raise Invalid(f"the message {id!r:.100} is not claimed by {claim_id!r:.100}")
    if holder != claim_id:
        if claim_id is None or claims.find(tx, queue.id, claim_id) is None:
            raise Invalid(f"there is no claim {claim_id!r:.100} in the queue {queue.name!r}, or it has ended")
        raise Forbidden(f"the message {id!r:.100} belongs to another claim than {claim_id!r:.100}")
    messages.delete(tx, stored)


def several(tx: Tx, queue: Queue, ids: Sequence[str], claim_ids: Sequence[str] | None) -> None:
    """
    Delete the messages that exist, claimed or not, as Zaqar does.

    With ``claim_ids``, raises Forbidden and deletes nothing if one of the messages is not held by one of these claims.
    """
    stored = messages.several(tx, queue.id, ids, for_update=True)
    if claim_ids is not None:
        for message in stored:
            if message.claim_id not in claim_ids:
                raise Forbidden(f"the message {message.id!r} belongs to none of the claims {', '.join(claim_ids):.500}")
    messages.delete(tx, stored)
