"""
Versioning: a replaced object is deleted, kept as a version in its container, or moved to an archive container.

An archive is Swift's older mechanism (``X-Versions-Location``, and ``X-History-Location``, which also records
deletions). The name of an archived object consists of its original name and its time, so that sorting by name also
sorts by time.
"""

from __future__ import annotations

import hashlib

from stoker.model.errors import PreconditionFailed
from stoker.model.objects import DELETE_MARKER, Container, Stored, timestamp
from stoker.model.ownership import check_write
from stoker.objects.expiry import remove
from stoker.store import containers, objects
from stoker.store.tx import Tx

EMPTY_ETAG = hashlib.md5(b"", usedforsecurity=False).hexdigest()


def set_aside(tx: Tx, container: Container, old: Stored, at: int) -> None:
    """
    Delete, keep or archive ``old`` before a newer object replaces it. Raises PreconditionFailed if the archive is
    missing.
    """
    if container.archive is not None and not _is_archived(container, old):
        _archive(tx, container, old)
    elif container.versions or old.version is not None:
        _retire(tx, old, at)
        if not container.versions:
            _drop_unnamed(tx, old)
    else:
        remove(tx, old)


def mark_deleted(tx: Tx, container: Container, name: str, at: int) -> Stored:
    """Add a delete marker: the object no longer exists, but its versions stay."""
    marker = _empty(container.account, container.name, name, version=timestamp(at), at=at, marker=True)
    objects.add(tx, marker, b"")
    containers.count(tx, container.account, container.name, kept=1)
    return marker


def record_deletion(tx: Tx, container: Container, name: str, at: int) -> None:
    """Record a deletion in an archive that keeps history. Raises PreconditionFailed if the archive is missing."""
    place = _archive_of(tx, container)
    record = _empty(container.account, place.name, archive_name(name, at), version=None, at=at, marker=False)
    _make_way(tx, record)
    objects.add(tx, record, b"")
    containers.count(tx, container.account, place.name, objects=1)


def bring_back(tx: Tx, container: Container, name: str) -> None:
    """Restore the last archived object of that name."""
    assert container.archive is not None, "asked only where there is one"
    place = containers.find(tx, container.account, container.archive, for_update=True)
    if place is None:
        return
    check_write(place, as_owner=False)
    last = objects.last_with(tx, container.account, container.archive, archive_prefix(name))
    if last is not None and last.content_type == DELETE_MARKER:
        remove(tx, last)
    elif last is not None:
        _move(tx, last, container.name, name)


def restore(tx: Tx, container: Container, now: Stored | None, older: Stored, at: int) -> None:
    """Make an older version the current object."""
    if now is not None and now.seq != older.seq:
        _retire(tx, now, at)
    if older.replaced_at is not None:
        objects.mark_replaced(tx, older.seq, None)
        containers.count(tx, container.account, container.name, objects=1, kept=-1)


def is_still_deleted(tx: Tx, container: Container, name: str) -> None:
    """After the current version was deleted: if the newest remaining version is a delete marker, make it current."""
    left = objects.newest(tx, container.account, container.name, name)
    if left is not None and left.marker:
        objects.mark_replaced(tx, left.seq, None)


def archive_name(name: str, at: int) -> str:
    """The name of an archived object: sorts by time among the versions of the same object. ``at`` in microseconds."""
    return f"{archive_prefix(name)}{timestamp(at)}"


def archive_prefix(name: str) -> str:
    """The prefix of the names of an object's archived versions."""
    return f"{len(name.encode()):03x}{name}/"


def _is_archived(container: Container, old: Stored) -> bool:
    """
    Whether ``old`` is itself an archived version, in a container that is its own archive; such objects are not
    archived.
    """
    if container.archive != container.name:
        return False
    bare, _, _ = old.name.rpartition("/")
    return bool(bare) and old.name.startswith(archive_prefix(bare[3:]))


def _archive(tx: Tx, container: Container, old: Stored) -> None:
    place = _archive_of(tx, container)
    name = archive_name(old.name, old.modified_at)
    _make_way(tx, _empty(old.account, place.name, name, version=None, at=0, marker=False))
    _move(tx, old, place.name, name)


def _archive_of(tx: Tx, container: Container) -> Container:
    assert container.archive is not None, "asked only where there is one"
    place = containers.find(tx, container.account, container.archive, for_update=True)
    if place is None:
        raise PreconditionFailed(
            f"the container {container.archive}, which stores the versions, does not exist: create it first"
        )
    check_write(place, as_owner=False)  # a user's container may name any container as its archive
    return place


def _make_way(tx: Tx, coming: Stored) -> None:
    there = objects.current(tx, coming.account, coming.container, coming.name)
    if there is not None:
        remove(tx, there)


def _move(tx: Tx, row: Stored, container: str, name: str) -> None:
    objects.move(tx, row.seq, container, name, row.modified_at)
    containers.count(tx, row.account, row.container, objects=-1, size=-row.size)
    containers.count(tx, row.account, container, objects=1, size=row.size)


def _retire(tx: Tx, old: Stored, at: int) -> None:
    objects.mark_replaced(tx, old.seq, at)
    if not old.marker:
        containers.count(tx, old.account, old.container, objects=-1, kept=1)


def _drop_unnamed(tx: Tx, old: Stored) -> None:
    """Remove the unnamed version: while versioning is suspended, an object has at most one."""
    unnamed = objects.version(tx, old.account, old.container, old.name, "null")
    if unnamed is not None:
        remove(tx, unnamed)


def _empty(account: str, container: str, name: str, *, version: str | None, at: int, marker: bool) -> Stored:
    return Stored(
        seq=0,
        account=account,
        container=container,
        name=name,
        version=version,
        etag=EMPTY_ETAG,
        size=0,
        content_type=DELETE_MARKER,
        headers={},
        modified_at=at,
        delete_at=None,
        replaced_at=None,
        marker=marker,
    )
