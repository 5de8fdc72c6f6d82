"""Serializes messaging objects to Zaqar's JSON."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from stoker.messaging import metadata, subscription_service
from stoker.model.messaging import Message, Queue, Stats, Subscription
from stoker.store import rows


def queue(found: Queue, *, detailed: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": found.name, "href": f"/v2/queues/{found.name}"}
    if detailed:
        shown["metadata"] = metadata.visible_metadata(found.metadata)
    return shown


def message(found: Message, base: str, now: datetime) -> dict[str, Any]:
    """Serialize a message. ``base`` is the queue's path."""
    claim = f"?claim_id={found.claim_id}" if found.claim_id else ""
    return {
        "id": found.id,
        "href": f"{base}/messages/{found.id}{claim}",
        "ttl": found.ttl,
        "age": age(found, now),
        "body": _body(found),
        "checksum": found.checksum,
    }


def popped_message(found: Message, now: datetime) -> dict[str, Any]:
    """Serialize a message that was removed from its queue; it has no link."""
    return {
        "id": found.id,
        "ttl": found.ttl,
        "age": age(found, now),
        "body": _body(found),
        "claim_id": found.claim_id,
        "claim_count": found.claim_count,
        "checksum": found.checksum,
    }


def stats(found: Stats | None, base: str, now: datetime) -> dict[str, Any]:
    total, claimed = (found.total, found.claimed) if found else (0, 0)
    shown: dict[str, Any] = {"claimed": claimed, "free": total - claimed, "total": total}
    for name, end in (("oldest", found.oldest), ("newest", found.newest)) if found else ():
        if end is not None:
            created = rows.heat_time(end.created_at)
            shown[name] = {"age": age(end, now), "created": created, "href": f"{base}/messages/{end.id}"}
    return {"messages": shown}


def subscription(found: Subscription, queue_name: str, now: datetime) -> dict[str, Any]:
    return {
        "id": found.id,
        "source": queue_name,
        "subscriber": found.subscriber,
        "ttl": found.ttl,
        "age": subscription_service.age(found, now),
        "options": found.options,
        "confirmed": found.confirmed,
    }


def age(found: Message, now: datetime) -> int:
    """Return the age of the message in seconds."""
    return max(0, int((now - found.created_at).total_seconds()))


def _body(found: Message) -> msgspec.Raw:
    """Return the stored JSON text without decoding it."""
    return msgspec.Raw(found.body.encode())
