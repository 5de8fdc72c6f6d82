"""What the object store holds. An account is a project; its id is the project's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: Swift counts time in hundred-thousandths of a second: timestamps are multiples of this many microseconds.
TICK = 10

#: What stands in a listing for "from here on it was deleted".
DELETE_MARKER = "application/x-deleted;swift_versions_deleted=1"


def timestamp(moment: int) -> str:
    """Microseconds as Swift writes them: seconds with five decimals. Sorted as text, they are sorted in time."""
    seconds, rest = divmod(moment, 1_000_000)
    return f"{seconds:010}.{rest // TICK:05}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    id: str
    #: ``x-account-meta-…`` by their lower-case names.
    headers: Mapping[str, str] = field(default_factory=dict)
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    containers: int
    objects: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    account: str
    name: str
    #: Whom it was made for: the id of a resource or of a server. None: a user's own.
    owner: str | None = None
    #: Kept headers by their lower-case names: metadata, and what was said of versions.
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Objects that are seen, bytes of all rows, and rows that only a list of versions shows.
    objects: int = 0
    bytes: int = 0
    kept: int = 0
    created_at: int

    @property
    def versions(self) -> bool | None:
        """Whether replaced objects are kept as versions; None: this was never asked for."""
        said = self.headers.get("x-versions-enabled")
        return None if said is None else said == "true"

    @property
    def archive(self) -> str | None:
        """The container that replaced objects are moved to."""
        return self.headers.get("x-versions-location") or self.headers.get("x-history-location")

    @property
    def keeps_history(self) -> bool:
        """A deletion too is recorded in the archive, and brings no older object back."""
        return "x-history-location" in self.headers


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """An object, or one version of it, without its bytes."""

    seq: int
    account: str
    container: str
    name: str
    #: None: written while the container kept no versions.
    version: str | None
    etag: str
    size: int
    content_type: str
    #: Kept headers by their lower-case names, ``x-object-meta-…`` among them.
    headers: Mapping[str, str]
    modified_at: int
    #: Microseconds, at a whole second.
    delete_at: int | None
    #: When something newer took its place; None: it is what the name means now.
    replaced_at: int | None
    #: It says that there is no object from here on.
    marker: bool = False

    def expired(self, now: int) -> bool:
        return self.delete_at is not None and self.delete_at <= now


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A line of a listing. ``folder``: it stands for all names that begin so."""

    name: str
    folder: bool = False
    etag: str = ""
    size: int = 0
    content_type: str = ""
    modified_at: int = 0
    #: Of containers.
    objects: int = 0
    #: Of versions.
    version: str | None = None
    latest: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Which part of a listing is asked for."""

    limit: int
    marker: str = ""
    end_marker: str = ""
    prefix: str = ""
    delimiter: str = ""
    #: Swift's older way to walk folders: only what lies directly below. None: not asked for.
    path: str | None = None
    reverse: bool = False
    #: With ``marker``: the version to go on after.
    version_marker: str = ""
