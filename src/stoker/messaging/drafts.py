"""Builds messages from posted data, before they are stored."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from stoker.messaging import limits, metadata
from stoker.model.errors import Invalid
from stoker.model.messaging import Message
from stoker.store import rows

#: Without a delay, a message is visible to every reader: a transaction that began before the post, or a process whose
#: clock is behind, might otherwise miss the message and continue after a later one.
_NO_DELAY = datetime.fromtimestamp(0, UTC)


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that a client posts. ``ttl`` and ``delay`` are in seconds; None: the queue's default."""

    body: Any
    ttl: int | None = None
    delay: int | None = None


def create_drafts(now: datetime, bodies: Sequence[Any], *, ttl: int, delay: int = 0) -> list[Message]:
    """Messages that Stoker itself posts. They have no limits except those of JSON."""
    return [_message(now, body, ttl, delay, None) for body in bodies]


def read(
    now: datetime, posted: Sequence[Draft], of_queue: Mapping[str, Any], *, size: int, client_id: str | None
) -> list[Message]:
    """
    Return the messages that a client posts to a queue with the metadata ``of_queue``.

    ``size`` is the length of the request's body in bytes. Raises Invalid if the queue does not accept this size.
    """
    most = of_queue.get(metadata.POST_SIZE) or limits.POST_SIZE
    if size > most:
        raise Invalid(f"the messages are too large for this queue: {size} bytes, more than the limit of {most}")
    default_ttl = of_queue.get(metadata.TTL) or limits.MESSAGE_TTL
    default_delay = of_queue.get(metadata.DELAY) or limits.MESSAGE_DELAY
    return [
        _message(
            now,
            draft.body,
            default_ttl if draft.ttl is None else draft.ttl,
            default_delay if draft.delay is None else draft.delay,
            client_id,
        )
        for draft in posted
    ]


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
