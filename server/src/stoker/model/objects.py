"""Accounts, containers and objects of the object store. Each project has one account, with the id of the project."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

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
