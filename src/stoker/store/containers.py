"""Queries for containers of the object store. Each row has the totals of its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Container, Entry, Page
from stoker.store import listings, rows
from stoker.store.schema import containers
from stoker.store.tx import Tx

_IT = (containers.c.account == sa.bindparam("of"), containers.c.name == sa.bindparam("named"))
_MAKE = sa.text(
    "INSERT INTO containers (account, name, owner, headers, objects, bytes, kept, created_at)"
    " VALUES (:account, :name, :owner, :headers, 0, 0, 0, :created_at) ON CONFLICT (account, name) DO NOTHING"
)
_ONE = sa.select(containers).where(*_IT)
_LOCKED = _ONE.with_for_update()
_CHANGE = sa.update(containers).where(*_IT).values(headers=sa.bindparam("new_headers"))
_COUNT = (
    sa.update(containers)
    .where(*_IT)
    .values(
        objects=containers.c.objects + sa.bindparam("more_objects"),
        bytes=containers.c.bytes + sa.bindparam("more_bytes"),
        kept=containers.c.kept + sa.bindparam("more_kept"),
    )
)
_DELETE = sa.delete(containers).where(*_IT)

_LISTED = listings.Source(
    name=containers.c.name,
    shown={"size": containers.c.bytes, "objects": containers.c.objects, "modified_at": containers.c.created_at},
    where=(containers.c.account == sa.bindparam("of"),),
)


def dump_headers(tx: Tx, headers: Mapping[str, str]) -> str:
    """Serialize the headers of an account or container; encrypt them if they contain keys that sign URLs."""
    return tx.secrets.dump(headers, always=any("temp-url-key" in name for name in headers))


def add(tx: Tx, account: str, name: str, headers: Mapping[str, str], owner: str | None) -> bool:
    """Insert a container. Return False, and change nothing, if a container with this name exists."""
    said = {
        "account": account,
        "name": name,
        "owner": owner,
        "headers": dump_headers(tx, headers),
        "created_at": rows.to_micros(tx.now),
    }
    return tx.run(_MAKE, said).rowcount == 1


def find(tx: Tx, account: str, name: str, *, for_update: bool = False) -> Container | None:
    """Return the container, or None. ``for_update`` locks its row: no other transaction writes to the container."""
    row = tx.run(_LOCKED if for_update else _ONE, {"of": account, "named": name}).first()
    return None if row is None else _container(tx, row)


def change(tx: Tx, account: str, name: str, headers: Mapping[str, str]) -> None:
    """Replace the container's headers."""
    tx.run(_CHANGE, {"of": account, "named": name, "new_headers": dump_headers(tx, headers)})


def count(tx: Tx, account: str, name: str, *, objects: int = 0, size: int = 0, kept: int = 0) -> None:
    """Add to the container's totals: objects, bytes, and rows that only a listing of versions contains."""
    if objects or size or kept:
        more = {"more_objects": objects, "more_bytes": size, "more_kept": kept}
        tx.run(_COUNT, {"of": account, "named": name, **more})


def delete(tx: Tx, account: str, name: str) -> None:
    """Delete the container."""
    tx.run(_DELETE, {"of": account, "named": name})


def page(tx: Tx, account: str, asked: Page) -> list[Entry]:
    """Return a page of the listing of the account's containers."""
    return listings.page(tx, _LISTED, {"of": account}, asked)


def _container(tx: Tx, row: Any) -> Container:
    return Container(
        account=row.account,
        name=row.name,
        owner=row.owner,
        headers=tx.secrets.load(row.headers),
        objects=row.objects,
        bytes=row.bytes,
        kept=row.kept,
        created_at=row.created_at,
    )
