"""Accounts and containers: made, described and taken away here."""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.errors import Conflict, EntityNotFound
from stoker.model.objects import Account, Container
from stoker.objects import expiry, limits, metadata
from stoker.objects.tempurl import KEY_HEADERS
from stoker.objects.writing import held
from stoker.store import accounts, containers, objects, rows
from stoker.store.tx import Tx


def account(tx: Tx, account: str) -> Account:
    """One that nothing was ever said about is there all the same, and empty."""
    return accounts.find(tx, account) or Account(id=account, created_at=rows.stamp(tx.now))


def change_account(tx: Tx, account: str, said: Mapping[str, str]) -> None:
    """``said``: headers by lower-case names. Raises Invalid."""
    old = accounts.hold(tx, account)
    accounts.change(tx, account, metadata.merged(old.headers, said, metadata.ACCOUNT))


def keys(account: Account | None, container: Container | None) -> list[str]:
    """All keys that URLs into the container may be signed with."""
    found = []
    for thing, prefix in ((account, metadata.ACCOUNT), (container, metadata.CONTAINER)):
        if thing is not None:
            found += [thing.headers[prefix + name] for name in KEY_HEADERS if thing.headers.get(prefix + name)]
    return found


def create_container(
    tx: Tx, account: str, name: str, headers: Mapping[str, str] | None = None, *, owner: str | None = None
) -> bool:
    """
    False when it was there: then ``headers`` are added to what is known of it, and its owner stays. Raises Invalid.
    """
    limits.container_name(name)
    said = headers or {}
    if containers.add(tx, account, name, metadata.of_container({}, said), owner):
        return True
    if said:
        change_container(tx, account, name, said)
    return False


def change_container(tx: Tx, account: str, name: str, said: Mapping[str, str]) -> None:
    """``said``: headers by lower-case names. Raises EntityNotFound, Invalid."""
    old = held(tx, account, name)
    changed = metadata.of_container(old.headers, said)
    if changed != old.headers:
        containers.change(tx, account, name, changed)


def container(tx: Tx, account: str, name: str) -> Container:
    """Raises EntityNotFound."""
    found = containers.find(tx, account, name)
    if found is None:
        raise EntityNotFound.of("Container", name)
    return found


def delete_container(tx: Tx, account: str, name: str) -> None:
    """Raises EntityNotFound, Conflict while something is in it."""
    expiry.sweep(tx, held(tx, account, name))
    left = container(tx, account, name)
    if left.objects or left.kept:
        raise Conflict(f"the container {name} is not empty: {left.objects} objects, {left.kept} versions of others")
    containers.delete(tx, account, name)


def delete_container_and_all(tx: Tx, account: str, name: str) -> None:
    """Whatever is in it, and though it may be gone already."""
    if containers.find(tx, account, name, hold=True) is not None:
        objects.delete_all(tx, account, name)
        containers.delete(tx, account, name)
