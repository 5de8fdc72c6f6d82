"""Operations on accounts, containers and objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stoker.model.embedded import TICK, Account, Container, Stored, check_write
from stoker.model.errors import Conflict, EntityNotFound
from stoker.objects import limits
from stoker.objects.tempurl import KEY_HEADERS
from stoker.store import objects, rows
from stoker.store.tx import Tx

#: Arguments: tx, account, container, name. Called first in a transaction that writes an object.
OnWriting = Callable[[Tx, str, str, str], None]
#: Arguments: tx, account, container, name, data. Called after the object is written, in the same transaction.
OnWritten = Callable[[Tx, str, str, str, bytes], None]

DEFAULT_TYPE = "application/octet-stream"


@dataclass(frozen=True, slots=True)
class WriteCallbacks:
    """What the rest of Stoker does in a transaction in which a client writes an object."""

    #: Takes the locks that the callback needs: a stack must be locked before the container in which its signals arrive.
    on_writing: OnWriting | None = None
    #: Processes the content, for example a signal. An exception undoes the write.
    on_written: OnWritten | None = None


#: Of objects that Stoker itself writes.
NO_CALLBACKS = WriteCallbacks()


def put(
    tx: Tx,
    account: str,
    container: str,
    name: str,
    data: bytes,
    *,
    content_type: str = DEFAULT_TYPE,
    headers: Mapping[str, str] = MappingProxyType({}),
    secret: bool = False,
    callbacks: WriteCallbacks = NO_CALLBACKS,
    as_owner: bool = False,
) -> Stored:
    """
    Write an object. Raises EntityNotFound for the container, Invalid for the name, WriteRefused like ``lock``.

    The names in ``headers`` are lower case. ``secret``: encrypt the bytes, as always in containers of servers and
    deployments.
    """
    limits.object_name(name)
    if callbacks.on_writing is not None:
        callbacks.on_writing(tx, account, container, name)
    owner = lock(tx, account, container, as_owner=as_owner).owner
    old = objects.find(tx, account, container, name)
    stored = Stored(
        account=account,
        container=container,
        name=name,
        etag=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        size=len(data),
        content_type=content_type,
        headers=dict(headers),
        modified_at=_time_after(tx, old),
        encrypted=bool(data) and (secret or owner is not None),
    )
    if old is not None:
        _delete(tx, old)
    objects.add(tx, stored, data)
    objects.add_to_totals(tx, account, container, objects=1, size=stored.size)
    if callbacks.on_written is not None:
        callbacks.on_written(tx, account, container, name, data)
    return stored


def change(tx: Tx, old: Stored, *, headers: Mapping[str, str], content_type: str) -> None:
    """Replace an object's metadata and keep its bytes. The caller has read ``old`` under the container's lock."""
    objects.change(tx, old, headers=headers, content_type=content_type, modified_at=_time_after(tx, old))


def delete(tx: Tx, account: str, container: str, name: str, *, as_owner: bool = False) -> bool:
    """Delete an object, and return whether it existed. Raises EntityNotFound for the container."""
    lock(tx, account, container, as_owner=as_owner)
    old = objects.find(tx, account, container, name)
    if old is not None:
        _delete(tx, old)
    return old is not None


def lock(tx: Tx, account: str, container: str, *, as_owner: bool = False) -> Container:
    """
    Lock the container until the transaction ends.

    Raises EntityNotFound, and WriteRefused if the container belongs to a server or deployment
    (``check_write``).
    """
    row = objects.find_container(tx, account, container, for_update=True)
    if row is None:
        raise EntityNotFound.of("Container", container)
    check_write(row, as_owner=as_owner)
    return row


def find(tx: Tx, account: str, container: str, name: str) -> Stored:
    """Find an object. Raises EntityNotFound."""
    stored = objects.find(tx, account, container, name)
    if stored is None:
        raise EntityNotFound.of("Object", name)
    return stored


def read(tx: Tx, account: str, container: str, name: str) -> tuple[Stored, bytes]:
    """Like ``find``, but with the bytes."""
    whole = objects.whole(tx, account, container, name)
    if whole is None:
        raise EntityNotFound.of("Object", name)
    return whole


def _delete(tx: Tx, old: Stored) -> None:
    objects.delete(tx, old.account, old.container, old.name)
    objects.add_to_totals(tx, old.account, old.container, objects=-1, size=-old.size)


def _time_after(tx: Tx, old: Stored | None) -> int:
    """The time of a write: later than ``old``, because no two writes of a name have the same time."""
    now = rows.to_micros(tx.now) // TICK * TICK
    return now if old is None else max(now, old.modified_at + TICK)


def account(tx: Tx, account: str) -> Account:
    """The account; an empty one if nothing is stored for it, because every account exists."""
    return objects.find_account(tx, account) or Account(id=account, created_at=rows.to_micros(tx.now))


def change_account(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Change the account's metadata. The header names in ``headers`` are lower case. Raises Invalid."""
    old = objects.lock_account(tx, account)
    objects.change_account(tx, account, limits.merge_metadata(old.headers, headers, limits.ACCOUNT_META))


def keys(account: Account | None, container: Container | None) -> list[str]:
    """All keys that may sign URLs for objects in the container."""
    values = []
    for thing, prefix in ((account, limits.ACCOUNT_META), (container, limits.CONTAINER_META)):
        if thing is not None:
            values += [thing.headers[prefix + name] for name in KEY_HEADERS if thing.headers.get(prefix + name)]
    return values


def create_container(
    tx: Tx, account: str, name: str, headers: Mapping[str, str] | None = None, *, owner: str | None = None
) -> bool:
    """
    Create a container. Returns False if it exists already.

    For an existing container, ``headers`` are merged into its metadata and the owner stays. ``owner`` is the id of the
    resource or server that needs the container; it replaces a container of that name that a user created. Raises
    Invalid, and WriteRefused if the container belongs to a server or deployment and no ``owner`` is given.
    """
    limits.container_name(name)
    changes = headers or {}
    fresh = limits.merge_metadata({}, changes, limits.CONTAINER_META)
    if objects.add_container(tx, account, name, fresh, owner):
        return True
    existing = objects.find_container(tx, account, name)
    if owner is not None and existing is not None and existing.owner is None:
        delete_container_and_all(tx, account, name)
        return objects.add_container(tx, account, name, fresh, owner)
    if existing is not None:
        check_write(existing, as_owner=owner is not None)
    if changes:
        change_container(tx, account, name, changes, as_owner=owner is not None)
    return False


def change_container(tx: Tx, account: str, name: str, headers: Mapping[str, str], *, as_owner: bool = False) -> None:
    """
    Change the container's metadata. The header names in ``headers`` are lower case.

    Raises EntityNotFound, Invalid, WriteRefused.
    """
    old = lock(tx, account, name, as_owner=as_owner)
    changed = limits.merge_metadata(old.headers, headers, limits.CONTAINER_META)
    if changed != old.headers:
        objects.change_container(tx, account, name, changed)


def container(tx: Tx, account: str, name: str) -> Container:
    """The container. Raises EntityNotFound."""
    row = objects.find_container(tx, account, name)
    if row is None:
        raise EntityNotFound.of("Container", name)
    return row


def delete_container(tx: Tx, account: str, name: str) -> None:
    """Delete an empty container. Raises EntityNotFound, and Conflict if the container is not empty."""
    count = lock(tx, account, name).objects
    if count:
        raise Conflict(f"the container {name} is not empty: {count} objects")
    objects.delete_container(tx, account, name)


def discard(tx: Tx, account: str, container: str, name: str) -> None:
    """Delete an object of Stoker's own, and also its container if the container has an owner and is now empty."""
    if objects.find_container(tx, account, container) is None:
        return
    delete(tx, account, container, name, as_owner=True)
    left = objects.find_container(tx, account, container)
    if left is not None and left.objects == 0 and left.owner is not None:
        delete_container_and_all(tx, account, container)


def delete_container_and_all(tx: Tx, account: str, name: str) -> None:
    """Delete a container with all its objects; does nothing if it does not exist."""
    if objects.find_container(tx, account, name, for_update=True) is not None:
        objects.delete_all(tx, account, name)
        objects.delete_container(tx, account, name)
