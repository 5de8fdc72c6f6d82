"""Queues, messages, claims and subscriptions, as in Zaqar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A message queue of a project."""

    id: str
    project_id: str
    name: str
    #: Metadata that users set. Names with a leading underscore have a meaning for the service.
    metadata: Mapping[str, Any]
    #: The resource or server that Stoker created the queue for; None: a user created it.
    owner: str | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message of a queue."""

    id: str
    #: JSON as text: the service does not interpret the body.
    body: str
    #: Seconds.
    ttl: int
    created_at: datetime
    expires_at: datetime
    delayed_until: datetime
    #: MD5 of the body, in Zaqar's format.
    checksum: str
    #: The Client-ID of the poster; None: Stoker posted the message.
    client_id: str | None = None
    #: The claim that currently contains the message.
    claim_id: str | None = None
    #: The number of times that the message was claimed.
    claim_count: int = 0
    #: The position in the queue; None until the message is stored.
    seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A claim: messages of a queue that one worker has reserved for a time."""

    id: str
    queue_id: str
    #: Seconds.
    ttl: int
    renewed_at: datetime
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Numbers of messages in a queue, with its oldest and newest message."""

    claimed: int
    total: int
    oldest: Message | None
    newest: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A subscription: the service posts each message of a queue to a webhook."""

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
