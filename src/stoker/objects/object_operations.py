"""Operations on objects, used by the HTTP API and by ``Objects``."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.objects import TICK, Container, Stored, timestamp
from stoker.model.ownership import check_write
from stoker.objects import expiry, limits, versions
from stoker.objects.port import Port
from stoker.store import containers, objects, rows
from stoker.store.tx import Tx

#: A precondition: called with the current object (None if there is none) before a write. An exception stops the write.
Check = Callable[[Stored | None], None]

DEFAULT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """An object to write. The names in ``headers`` are lower case; ``delete_at`` is in microseconds."""

    account: str
    container: str
    name: str
    data: bytes
    content_type: str = DEFAULT_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    delete_at: int | None = None
    #: Whether to encrypt the bytes. Objects in containers of servers and deployments are always encrypted.
    secret: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The result of a deletion."""

    existed: bool
    #: The deleted version, or the new delete marker; None if the container has no versions.
    version: str | None = None


def put(tx: Tx, port: Port, new: New, check: Check | None = None, *, as_owner: bool = False) -> Stored:
    """
    Write an object.

    Raises EntityNotFound for the container, Invalid for the name, PreconditionFailed if the container's archive does
    not exist, and WriteRefused like ``lock``.
    """
    limits.object_name(new.name)
    if port.on_writing is not None:
        port.on_writing(tx, new.account, new.container, new.name)
    container = lock(tx, new.account, new.container, as_owner=as_owner)
    old, at = _now(tx, container, new.name)
    if check is not None:
        check(_visible(old, tx))
    if old is not None:
        versions.set_aside(tx, container, old, at)
    stored = Stored(
        seq=0,
        account=new.account,
        container=new.container,
        name=new.name,
        version=timestamp(at) if container.versions else None,
        etag=hashlib.md5(new.data, usedforsecurity=False).hexdigest(),
        size=len(new.data),
        content_type=new.content_type,
        headers=new.headers,
        modified_at=at,
        delete_at=new.delete_at,
        replaced_at=None,
        encrypted=bool(new.data) and (new.secret or container.owner is not None),
    )
    seq = objects.add(tx, stored, new.data)
    containers.count(tx, new.account, new.container, objects=1, size=stored.size)
    expiry.plan(tx, port, seq, new.delete_at)
    if port.on_written is not None:
        port.on_written(tx, new.account, new.container, new.name, new.data)
    return stored


def change(
    tx: Tx,
    port: Port,
    old: Stored,
    *,
    headers: Mapping[str, str],
    content_type: str,
    delete_at: int | None,
) -> None:
    """Replace an object's metadata and keep its bytes. The caller has read ``old`` under the container's lock."""
    at = max(_tick(tx), old.modified_at + TICK)
    objects.change(tx, old.seq, headers=headers, content_type=content_type, delete_at=delete_at, modified_at=at)
    if delete_at != old.delete_at:
        expiry.plan(tx, port, old.seq, delete_at)


def delete(
    tx: Tx,
    account: str,
    container: str,
    name: str,
    *,
    version: str | None = None,
    check: Check | None = None,
    as_owner: bool = False,
) -> Gone:
    """
    Delete an object. With ``version``, delete only that version, permanently.

    Raises EntityNotFound for the container, and PreconditionFailed like ``put``.
    """
    place = lock(tx, account, container, as_owner=as_owner)
    if version is not None:
        return _delete_version(tx, place, name, version, check)
    old, at = _now(tx, place, name)
    visible = _visible(old, tx)
    if check is not None:
        check(visible)
    if place.versions:
        if old is not None:
            versions.set_aside(tx, place, old, at)
        return Gone(visible is not None, versions.mark_deleted(tx, place, name, at).version)
    if old is None or visible is None:
        return Gone(False)
    if place.archive is not None and place.keeps_history:
        versions.set_aside(tx, place, old, at)
        versions.record_deletion(tx, place, name, at)
    elif place.archive is not None:
        expiry.remove(tx, old)
        versions.bring_back(tx, place, name)
    elif old.version is not None:
        versions.set_aside(tx, place, old, at)  # versioning is suspended: existing versions stay
    else:
        expiry.remove(tx, old)
    return Gone(True)


def restore(tx: Tx, account: str, container: str, name: str, version: str) -> Stored:
    """
    Make a version the current object again. Raises EntityNotFound, and Invalid if the container has no versions.
    """
    place = lock(tx, account, container)
    if place.versions is None:
        raise Invalid(f"the container {container} has no versions")
    older = objects.version(tx, account, container, name, version)
    if older is None or older.marker:
        raise EntityNotFound.of("Version", version)
    old, at = _now(tx, place, name)
    versions.restore(tx, place, old, older, at)
    return older


def lock(tx: Tx, account: str, container: str, *, as_owner: bool = False) -> Container:
    """
    Lock the container until the transaction ends.

    Raises EntityNotFound, and WriteRefused if the container belongs to a server or deployment
    (``ownership.check_write``).
    """
    row = containers.find(tx, account, container, for_update=True)
    if row is None:
        raise EntityNotFound.of("Container", container)
    check_write(row, as_owner=as_owner)
    return row


def find(tx: Tx, account: str, container: str, name: str, version: str | None = None) -> Stored:
    """Find an object or a version. Raises EntityNotFound, also for expired objects and delete markers."""
    if version is None:
        row = objects.current(tx, account, container, name)
    else:
        row = objects.version(tx, account, container, name, version)
    visible = _visible(row, tx)
    if visible is None:
        raise EntityNotFound.of("Object", name)
    return visible


def read(tx: Tx, account: str, container: str, name: str, version: str | None = None) -> tuple[Stored, bytes]:
    """Like ``find``, but with the bytes."""
    row = objects.whole(tx, account, container, name, version)
    if row is None or _visible(row[0], tx) is None:
        raise EntityNotFound.of("Object", name)
    return row


def _delete_version(tx: Tx, place: Container, name: str, version: str, check: Check | None) -> Gone:
    row = objects.version(tx, place.account, place.name, name, version)
    if row is None:
        return Gone(False, version)
    if check is not None:
        check(None if row.marker else row)
    expiry.remove(tx, row)
    if row.replaced_at is None:
        versions.is_still_deleted(tx, place, name)
    return Gone(True, version)


def _now(tx: Tx, container: Container, name: str) -> tuple[Stored | None, int]:
    """The current object, and a later time for the next write: no two writes of a name have the same time."""
    old = objects.current(tx, container.account, container.name, name)
    if old is not None and old.has_expired(rows.to_micros(tx.now)):
        expiry.remove(tx, old)
        return None, max(_tick(tx), old.modified_at + TICK)
    return old, _tick(tx) if old is None else max(_tick(tx), old.modified_at + TICK)


def _visible(row: Stored | None, tx: Tx) -> Stored | None:
    """The row, or None if it is a delete marker or has expired."""
    return None if row is None or row.marker or row.has_expired(rows.to_micros(tx.now)) else row


def _tick(tx: Tx) -> int:
    return rows.to_micros(tx.now) // TICK * TICK
