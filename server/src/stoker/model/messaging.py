"""Queues, messages and subscriptions, as in Zaqar."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct


class Queue(Struct, frozen=True, kw_only=True):
    """A message queue of a project."""

    id: str
    project_id: str
    name: str
    #: Metadata that users set. Names with a leading underscore have a meaning for the service.
    metadata: Mapping[str, Any]
    #: The resource or server that Stoker created the queue for; None: a user created it.
    owner: str | None
    created_at: datetime


class Message(Struct, frozen=True, kw_only=True):
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
    #: The position in the queue; None until the message is stored.
    seq: int | None = None


class Subscription(Struct, frozen=True, kw_only=True):
    """A subscription: the service posts each message of a queue to a webhook."""

    id: str
    queue_id: str
    #: An http or https URL.
    subscriber: str
    #: Seconds.
    ttl: int
    options: Mapping[str, Any]
    renewed_at: datetime
    expires_at: datetime
