"""Accounts, containers and objects of the object store. Each project has one account, with the id of the project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Swift counts time in units of 10 µs, so timestamps are multiples of this number of microseconds.
TICK = 10

#: The content type of a version that marks the deletion of its object, as in Swift.
DELETE_MARKER = "application/x-deleted;swift_versions_deleted=1"


def timestamp(moment: int) -> str:
    """Format a time in microseconds as Swift does: seconds with five decimals. Texts sort in the order of the times."""
    seconds, rest = divmod(moment, 1_000_000)
    return f"{seconds:010}.{rest // TICK:05}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account. ``created_at`` is in microseconds."""

    id: str
    #: ``x-account-meta-…`` headers by their lower-case names.
    headers: Mapping[str, str] = field(default_factory=dict)
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Numbers of containers, objects and bytes of an account."""

    containers: int
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container. ``created_at`` is in microseconds."""

    account: str
    name: str
    #: The id of the resource or server that Stoker created the container for. None: a user created it.
    owner: str | None = None
    #: Stored headers by their lower-case names: metadata and the settings of versioning.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Current objects, bytes of all rows, and rows that only a listing of versions contains.
    objects: int = 0
    bytes: int = 0
    kept: int = 0
    created_at: int

    @property
    def versions(self) -> bool | None:
        """Whether replaced objects are kept as versions; None: versioning was never configured."""
        enabled = self.headers.get("x-versions-enabled")
        return None if enabled is None else enabled == "true"

    @property
    def archive(self) -> str | None:
        """The container that replaced objects are moved to."""
        return self.headers.get("x-versions-location") or self.headers.get("x-history-location")

    @property
    def keeps_history(self) -> bool:
        """Whether the archive also records deletions, so that a deletion does not restore an older object."""
        return "x-history-location" in self.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object, or one version of an object, without its data. Times are in microseconds."""

    seq: int
    account: str
    container: str
    name: str
    #: None: written while the container did not keep versions.
    version: str | None
    etag: str
    size: int
    content_type: str
    #: Stored headers by their lower-case names, including ``x-object-meta-…``.
    headers: Mapping[str, str]
    modified_at: int
    #: When the object expires: microseconds, a whole second.
    delete_at: int | None
    #: When a newer version replaced this one; None: this version is the current one.
    replaced_at: int | None
    #: The version marks a deletion: the object does not exist from here on.
    marker: bool = False
    #: The database contains the object's data encrypted.
    encrypted: bool = False

    def has_expired(self, now: int) -> bool:
        """Return whether the object has expired at the time ``now``, in microseconds."""
        return self.delete_at is not None and self.delete_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of a listing. If ``folder`` is set, the line represents all names with the prefix ``name``."""

    name: str
    folder: bool = False
    etag: str = ""
    size: int = 0
    content_type: str = ""
    modified_at: int = 0
    #: Only in listings of containers.
    objects: int = 0
    #: Only in listings of versions.
    version: str | None = None
    latest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The requested part of a listing."""

    limit: int
    marker: str = ""
    end_marker: str = ""
    prefix: str = ""
    delimiter: str = ""
    #: Swift's older way to list folders: only the names directly below this path. None: not requested.
    path: str | None = None
    reverse: bool = False
    #: Together with ``marker``: the version after which the page begins.
    version_marker: str = ""
