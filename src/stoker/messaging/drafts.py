"""Builds messages from posted data, before they are stored."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from stoker.messaging import checks, limits, metadata
from stoker.model.errors import Invalid
from stoker.model.messaging import Message
from stoker.store import rows


def create_drafts(now: datetime, bodies: Sequence[Any], *, ttl: int, delay: int = 0) -> list[Message]:
    """Messages that Stoker itself posts. They have no limits except those of JSON."""
    return [_message(now, body, ttl, delay, None) for body in bodies]


def read(now: datetime, body: Any, of_queue: Mapping[str, Any], *, size: int, client_id: str | None) -> list[Message]:
    """
    Messages from the JSON body ``body`` of a request, ``size`` bytes long, for a queue with the metadata ``of_queue``.

    Unknown fields are ignored, as in Zaqar. Raises Invalid with the name of the invalid value.
    """
    most = of_queue.get(metadata.POST_SIZE) or limits.POST_SIZE
    if size > most:
        raise Invalid(f"the messages are too large for this queue: {size} bytes, more than the limit of {most}")
    if not isinstance(body, Mapping) or not isinstance(body.get("messages"), list):
        raise Invalid('the request\'s body must be a JSON object with a list of "messages"')
    entries = body["messages"]
    if not 1 <= len(entries) <= limits.MESSAGES_A_POST:
        raise Invalid(f"messages must be at least 1 and at most {limits.MESSAGES_A_POST}, not {len(entries)}")
    return [_read(now, entry, of_queue, client_id) for entry in entries]


def _read(now: datetime, entry: Any, of_queue: Mapping[str, Any], client_id: str | None) -> Message:
    message = checks.mapping(entry, "a message")
    if "body" not in message:
        raise Invalid('a message must have a "body"')
    ttl = message.get("ttl", of_queue.get(metadata.TTL) or limits.MESSAGE_TTL)
    delay = message.get("delay", of_queue.get(metadata.DELAY) or limits.MESSAGE_DELAY)
    checks.whole(ttl, "a message's ttl", limits.SHORTEST_TTL, limits.LONGEST_TTL)
    checks.whole(delay, "a message's delay", 0, limits.LONGEST_DELAY)
    return _message(now, message["body"], ttl, delay, client_id)


def _message(now: datetime, body: Any, ttl: int, delay: int, client_id: str | None) -> Message:
    digest = hashlib.md5(json.dumps(body).encode(), usedforsecurity=False).hexdigest()
    return Message(
        id=str(uuid.uuid4()),
        body=rows.dump(body),
        ttl=ttl,
        created_at=now,
        expires_at=now + timedelta(seconds=ttl),
        delayed_until=now + timedelta(seconds=delay),
        checksum=f"MD5:{digest}",
        client_id=client_id,
    )
