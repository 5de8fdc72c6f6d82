"""Queries for containers of the object store. Each row has the totals of its container."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from stoker.model.objects import Container, Entry, Page
from stoker.store import listings, rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import containers
from stoker.store.tx import Tx

_CONTAINERS = Repository(Container, containers, key=("account", "name"))
_ADD = statements.insert_new(containers, "account", "name")
_SET_HEADERS = statements.update(containers, "headers", key=("account", "name"))
_COUNT = (
    sa.update(containers)
    .where(*statements.equal(containers, "account", "name", prefix="key_"))
    .values(
        objects=containers.c.objects + sa.bindparam("more_objects"),
        bytes=containers.c.bytes + sa.bindparam("more_bytes"),
        kept=containers.c.kept + sa.bindparam("more_kept"),
    )
)

_LISTED = listings.Source(
    name=containers.c.name,
    shown={"size": containers.c.bytes, "objects": containers.c.objects, "modified_at": containers.c.created_at},
    where=(containers.c.account == sa.bindparam("account"),),
)


def dump_headers(tx: Tx, headers: Mapping[str, str]) -> str:
    """Serialize the headers of an account or container; encrypt them if they contain keys that sign URLs."""
    return tx.secrets.dump(headers, always=any("temp-url-key" in name for name in headers))


def add(tx: Tx, account: str, name: str, headers: Mapping[str, str], owner: str | None) -> bool:
    """Insert a container. Return False, and change nothing, if a container with this name exists."""
    container = Container(account=account, name=name, owner=owner, headers=headers, created_at=rows.to_micros(tx.now))
    values = _CONTAINERS.encode(container, tx.secrets) | {"headers": dump_headers(tx, headers)}
    return tx.execute_fast(_ADD, values) is not None


def find(tx: Tx, account: str, name: str, *, for_update: bool = False) -> Container | None:
    """Return the container, or None. ``for_update`` locks its row: no other transaction writes to the container."""
    return _CONTAINERS.find(tx, account, name, for_update=for_update)


def change(tx: Tx, account: str, name: str, headers: Mapping[str, str]) -> None:
    """Replace the container's headers."""
    values = {"key_account": account, "key_name": name, "headers": dump_headers(tx, headers)}
    tx.execute_fast(_SET_HEADERS, values)


def count(tx: Tx, account: str, name: str, *, objects: int = 0, size: int = 0, kept: int = 0) -> None:
    """Add to the container's totals: objects, bytes, and rows that only a listing of versions contains."""
    if objects or size or kept:
        more = {"more_objects": objects, "more_bytes": size, "more_kept": kept}
        tx.execute_fast(_COUNT, {"key_account": account, "key_name": name, **more})


def delete(tx: Tx, account: str, name: str) -> None:
    """Delete the container."""
    _CONTAINERS.delete(tx, account, name)


def page(tx: Tx, account: str, part: Page) -> list[Entry]:
    """Return a page of the listing of the account's containers."""
    return listings.page(tx, _LISTED, {"account": account}, part)
