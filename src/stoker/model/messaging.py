"""Queues, messages, claims and subscriptions, as Zaqar has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    id: str
    project_id: str
    name: str
    #: What its users said of it; the names with an underscore mean something to the service.
    metadata: Mapping[str, Any]
    #: The resource or server that it was made for; None: somebody's own.
    owner: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    id: str
    #: JSON as text: nobody here looks into it.
    body: str
    #: Seconds.
    ttl: int
    created_at: datetime
    expires_at: datetime
    delayed_until: datetime
    #: MD5 of the body, as Zaqar writes it.
    checksum: str
    #: Who posted it, by the Client-ID they gave; None: Stoker itself.
    client_id: str | None = None
    #: The claim that holds it now.
    claim_id: str | None = None
    #: How often it was claimed.
    claim_count: int = 0
    #: Its place in its queue; None until it is stored.
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    id: str
    queue_id: str
    #: Seconds.
    ttl: int
    renewed_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    claimed: int
    total: int
    oldest: Message | None
    newest: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    id: str
    queue_id: str
    #: An http or https URL.
    subscriber: str
    #: Seconds.
    ttl: int
    options: Mapping[str, Any]
    confirmed: bool
    renewed_at: datetime
    expires_at: datetime
