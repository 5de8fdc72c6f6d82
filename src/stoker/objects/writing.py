"""Objects are written here, whoever writes them: the HTTP face, or another room in a transaction of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.objects import TICK, Container, Stored, timestamp
from stoker.objects import expiry, limits, versions
from stoker.objects.port import Port
from stoker.store import containers, objects, rows
from stoker.store.tx import Tx

#: Sees what the name means before anything is written (None: nothing); an error it raises stops the write.
Check = Callable[[Stored | None], None]

DEFAULT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True, kw_only=True)
class New:
    """An object to be. ``headers``: kept ones by lower-case names; ``delete_at`` in microseconds."""

    account: str
    container: str
    name: str
    data: bytes
    content_type: str = DEFAULT_TYPE
    headers: Mapping[str, str] = field(default_factory=dict)
    delete_at: int | None = None


@dataclass(frozen=True, slots=True)
class Gone:
    """What a deletion came to."""

    found: bool
    #: That was taken away, or that says from now on that there is nothing; None where no versions are kept.
    version: str | None = None


def put(tx: Tx, port: Port, new: New, check: Check | None = None) -> Stored:
    """Raises EntityNotFound for the container, Invalid for the name, PreconditionFailed without its archive."""
    limits.object_name(new.name)
    if port.on_writing is not None:
        port.on_writing(tx, new.account, new.container, new.name)
    container = held(tx, new.account, new.container)
    old, at = _now(tx, container, new.name)
    if check is not None:
        check(_seen(old, tx))
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
    """Other metadata for the same bytes. ``old`` is what ``find_held`` gave."""
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
) -> Gone:
    """``version``: that one alone, for ever. Raises EntityNotFound for the container, PreconditionFailed as ``put``."""
    place = held(tx, account, container)
    if version is not None:
        return _delete_version(tx, place, name, version, check)
    old, at = _now(tx, place, name)
    seen = _seen(old, tx)
    if check is not None:
        check(seen)
    if place.versions:
        if old is not None:
            versions.set_aside(tx, place, old, at)
        return Gone(seen is not None, versions.mark_deleted(tx, place, name, at).version)
    if old is None or seen is None:
        return Gone(False)
    if place.archive is not None and place.keeps_history:
        versions.set_aside(tx, place, old, at)
        versions.record_deletion(tx, place, name, at)
    elif place.archive is not None:
        expiry.remove(tx, old)
        versions.bring_back(tx, place, name)
    elif old.version is not None:
        versions.set_aside(tx, place, old, at)  # versions are suspended: those there are stay
    else:
        expiry.remove(tx, old)
    return Gone(True)


def restore(tx: Tx, account: str, container: str, name: str, version: str) -> Stored:
    """Let the name mean one of its versions again. Raises EntityNotFound, Invalid where no versions are kept."""
    place = held(tx, account, container)
    if place.versions is None:
        raise Invalid(f"the container {container} keeps no versions")
    wanted = objects.version(tx, account, container, name, version)
    if wanted is None or wanted.marker:
        raise EntityNotFound.of("Version", version)
    old, at = _now(tx, place, name)
    versions.restore(tx, place, old, wanted, at)
    return wanted


def held(tx: Tx, account: str, container: str) -> Container:
    """The container, kept from other writers until the transaction ends. Raises EntityNotFound."""
    found = containers.find(tx, account, container, hold=True)
    if found is None:
        raise EntityNotFound.of("Container", container)
    return found


def find(tx: Tx, account: str, container: str, name: str, version: str | None = None) -> Stored:
    """Raises EntityNotFound, also for what has expired or is only a mark of a deletion."""
    if version is None:
        found = objects.current(tx, account, container, name)
    else:
        found = objects.version(tx, account, container, name, version)
    seen = _seen(found, tx)
    if seen is None:
        raise EntityNotFound.of("Object", name)
    return seen


def read(tx: Tx, account: str, container: str, name: str, version: str | None = None) -> tuple[Stored, bytes]:
    """As ``find``, with the bytes."""
    found = objects.whole(tx, account, container, name, version)
    if found is None or _seen(found[0], tx) is None:
        raise EntityNotFound.of("Object", name)
    return found


def _delete_version(tx: Tx, place: Container, name: str, version: str, check: Check | None) -> Gone:
    row = objects.version(tx, place.account, place.name, name, version)
    if row is None:
        return Gone(False, version)
    if check is not None:
        check(None if row.marker else row)
    expiry.remove(tx, row)
    if row.replaced_at is None:
        versions.still_deleted(tx, place, name)
    return Gone(True, version)


def _now(tx: Tx, container: Container, name: str) -> tuple[Stored | None, int]:
    """What the name means, and a time that is later: two writes are never at the same one."""
    old = objects.current(tx, container.account, container.name, name)
    if old is not None and old.expired(rows.stamp(tx.now)):
        expiry.remove(tx, old)
        return None, max(_tick(tx), old.modified_at + TICK)
    return old, _tick(tx) if old is None else max(_tick(tx), old.modified_at + TICK)


def _seen(row: Stored | None, tx: Tx) -> Stored | None:
    """None for what nobody is to see."""
    return None if row is None or row.marker or row.expired(rows.stamp(tx.now)) else row


def _tick(tx: Tx) -> int:
    return rows.stamp(tx.now) // TICK * TICK
