"""Operations on accounts and containers."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.errors import Conflict, EntityNotFound
from stoker.model.objects import Account, Container
from stoker.model.ownership import check_write
from stoker.objects import limits, metadata
from stoker.objects.object_operations import delete, lock
from stoker.objects.tempurl import KEY_HEADERS
from stoker.store import containers, objects, rows
from stoker.store.tx import Tx


def account(tx: Tx, account: str) -> Account:
    """The account; an empty one if nothing is stored for it, because every account exists."""
    return containers.find_account(tx, account) or Account(id=account, created_at=rows.to_micros(tx.now))


def change_account(tx: Tx, account: str, headers: Mapping[str, str]) -> None:
    """Change the account's metadata. The header names in ``headers`` are lower case. Raises Invalid."""
    old = containers.lock_account(tx, account)
    containers.change_account(tx, account, metadata.merge(old.headers, headers, metadata.ACCOUNT))


def keys(account: Account | None, container: Container | None) -> list[str]:
    """All keys that may sign URLs for objects in the container."""
    values = []
    for thing, prefix in ((account, metadata.ACCOUNT), (container, metadata.CONTAINER)):
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
    fresh = metadata.merge({}, changes, metadata.CONTAINER)
    if containers.add(tx, account, name, fresh, owner):
        return True
    existing = containers.find(tx, account, name)
    if owner is not None and existing is not None and existing.owner is None:
        delete_container_and_all(tx, account, name)
        return containers.add(tx, account, name, fresh, owner)
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
    changed = metadata.merge(old.headers, headers, metadata.CONTAINER)
    if changed != old.headers:
        containers.change(tx, account, name, changed)


def container(tx: Tx, account: str, name: str) -> Container:
    """The container. Raises EntityNotFound."""
    row = containers.find(tx, account, name)
    if row is None:
        raise EntityNotFound.of("Container", name)
    return row


def delete_container(tx: Tx, account: str, name: str) -> None:
    """Delete an empty container. Raises EntityNotFound, and Conflict if the container is not empty."""
    count = lock(tx, account, name).objects
    if count:
        raise Conflict(f"the container {name} is not empty: {count} objects")
    containers.delete(tx, account, name)


def discard(tx: Tx, account: str, container: str, name: str) -> None:
    """Delete an object of Stoker's own, and also its container if the container has an owner and is now empty."""
    if containers.find(tx, account, container) is None:
        return
    delete(tx, account, container, name, as_owner=True)
    left = containers.find(tx, account, container)
    if left is not None and left.objects == 0 and left.owner is not None:
        delete_container_and_all(tx, account, container)


def delete_container_and_all(tx: Tx, account: str, name: str) -> None:
    """Delete a container with all its objects; does nothing if it does not exist."""
    if containers.find(tx, account, name, for_update=True) is not None:
        objects.delete_all(tx, account, name)
        containers.delete(tx, account, name)
