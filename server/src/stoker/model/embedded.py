"""
What the embedded object store and messaging service hold, modelled on Swift and Zaqar, and who may read and write it.

Each project has one account, with the id of the project. Containers and queues that Stoker creates for servers and
deployments contain documents and results. Users of the project may not write them, because an agent trusts them, and
may not read documents and results, because these contain secrets.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct, field

from stoker.model.errors import Forbidden, WriteRefused

#: Swift counts time in units of 10 µs, so timestamps are multiples of this number of microseconds.
TICK = 10


def timestamp(moment: int) -> str:
    """Format a time in microseconds as Swift does: seconds with five decimals. Texts sort in the order of the times."""
    seconds, rest = divmod(moment, 1_000_000)
    return f"{seconds:010}.{rest // TICK:05}"


class Account(Struct, frozen=True, kw_only=True):
    """An account. ``created_at`` is in microseconds."""

    id: str
    #: ``x-account-meta-…`` headers by their lower-case names.
    headers: Mapping[str, str] = field(default_factory=dict)
    created_at: int


class Totals(Struct, frozen=True, kw_only=True):
    """Numbers of containers, objects and bytes of an account."""

    containers: int
    objects: int
    bytes: int


class Container(Struct, frozen=True, kw_only=True):
    """A container. ``created_at`` is in microseconds."""

    account: str
    name: str
    #: The id of the resource or server that Stoker created the container for. None: a user created it.
    owner: str | None = None
    #: ``x-container-meta-…`` headers by their lower-case names.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The numbers of objects and of their bytes.
    objects: int = 0
    bytes: int = 0
    created_at: int


class Stored(Struct, frozen=True, kw_only=True):
    """An object without its data. ``modified_at`` is in microseconds."""

    account: str
    container: str
    name: str
    etag: str
    size: int
    content_type: str
    #: Stored headers by their lower-case names, including ``x-object-meta-…``.
    headers: Mapping[str, str]
    modified_at: int
    #: The database contains the object's data encrypted.
    encrypted: bool = False


class Entry(Struct, frozen=True, kw_only=True):
    """A line of a listing. If ``folder`` is set, the line represents all names with the prefix ``name``."""

    name: str
    folder: bool = False
    etag: str = ""
    size: int = 0
    content_type: str = ""
    modified_at: int = 0
    #: Only in listings of containers.
    objects: int = 0


class Page(Struct, frozen=True, kw_only=True):
    """The requested part of a listing."""

    limit: int
    marker: str = ""
    prefix: str = ""
    delimiter: str = ""


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


def belongs_to_agents(thing: Container | Queue | None) -> bool:
    """Return whether Stoker created the container or queue for a server or deployment. False for None."""
    return thing is not None and thing.owner is not None


def check_write(thing: Container | Queue, *, as_owner: bool) -> None:
    """
    Check that a caller may write to a container or queue.

    ``as_owner`` states that the caller is Stoker itself, or has a login or pre-signed URL that Stoker created for
    exactly this resource. Without it, raises WriteRefused if the container or queue belongs to a server or deployment.
    """
    if thing.owner is None or as_owner:
        return
    if isinstance(thing, Queue):
        raise WriteRefused("queue", thing.name, thing.owner, thing.project_id)
    raise WriteRefused("container", thing.name, thing.owner, thing.account)


def check_read(thing: Stored | Queue, *, as_owner: bool) -> None:
    """
    Check that a caller may read an object or queue.

    Raises Forbidden for a document or result, unless ``as_owner`` is set (see ``check_write``).
    """
    carries = thing.encrypted if isinstance(thing, Stored) else thing.owner is not None
    if carries and not as_owner:
        kind = "object" if isinstance(thing, Stored) else "queue"
        raise Forbidden(
            f"the {kind} {thing.name!r:.100} carries what a server is to run or has reported, with secrets in it: the "
            "server's agent alone reads it. Ask for the deployments instead."
        )
