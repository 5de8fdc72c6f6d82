"""Queries for objects and their versions. A transaction that writes an object has locked its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Entry, Page, Stored
from stoker.store import listings, rows, statements
from stoker.store.repository import Repository
from stoker.store.schema import objects
from stoker.store.tx import Tx

#: All columns except for the data, which is large.
_OBJECTS = Repository(Stored, objects, key=("seq",), unmapped=("data",))
_IN = statements.equal(objects, "account", "container")
_NOW = objects.c.replaced_at.is_(None)
_OF_NAME = _OBJECTS.by("account", "container", "name")
_CURRENT = _OF_NAME.where(_NOW)
_VERSION = _OF_NAME.where(objects.c.version == sa.bindparam("version"))
_UNNAMED = _OF_NAME.where(objects.c.version.is_(None))
_WHOLE = {query: query.add_columns(objects.c.data) for query in (_CURRENT, _VERSION, _UNNAMED)}

_ADD = sa.insert(objects).returning(objects.c.seq)
_NEWEST = _OF_NAME.order_by(objects.c.modified_at.desc()).limit(1)
_LAST_BETWEEN = (
    _OBJECTS.select(*_IN, _NOW, objects.c.name >= sa.bindparam("low"), objects.c.name < sa.bindparam("high"))
    .order_by(objects.c.name.desc())
    .limit(1)
)
_SET_REPLACED = statements.update(objects, "replaced_at", key=("seq",))
_MOVE = statements.update(objects, "container", "name", "modified_at", key=("seq",))
_CHANGE = statements.update(objects, "headers", "content_type", "delete_at", "modified_at", key=("seq",))
_DELETE_ALL = sa.delete(objects).where(*_IN)
_DELETE_EXPIRED = (
    sa.delete(objects)
    .where(*_IN, objects.c.delete_at <= sa.bindparam("now"))
    .returning(objects.c.size, objects.c.replaced_at, objects.c.marker)
)

_LISTED = listings.Source(
    name=objects.c.name,
    shown={name: objects.c[name] for name in ("etag", "size", "content_type", "modified_at")},
    where=(
        *_IN,
        _NOW,
        objects.c.marker.is_(False),
        sa.or_(objects.c.delete_at.is_(None), objects.c.delete_at > sa.bindparam("now")),
    ),
)
_other = objects.alias()
_MARKED_AT = (
    sa.select(_other.c.modified_at)
    .where(
        _other.c.account == sa.bindparam("account"),
        _other.c.container == sa.bindparam("container"),
        _other.c.name == sa.bindparam("marker"),
        sa.func.coalesce(_other.c.version, "null") == sa.bindparam("version_marker"),
    )
    .limit(1)
    .scalar_subquery()
)
_VERSIONS = (
    sa.select(
        *(objects.c[name] for name in ("name", "etag", "size", "content_type", "modified_at", "version")),
        _NOW.label("latest"),
    )
    .where(
        *_IN,
        sa.or_(objects.c.delete_at.is_(None), objects.c.delete_at > sa.bindparam("now")),
        objects.c.name >= sa.bindparam("low"),
        objects.c.name < sa.bindparam("high"),
    )
    .limit(sa.bindparam("limit", type_=sa.Integer))
)
_VERSIONS_ON = _VERSIONS.where(
    objects.c.name < sa.bindparam("before"),
    sa.or_(
        objects.c.name > sa.bindparam("after"),
        sa.and_(objects.c.name == sa.bindparam("marker"), objects.c.modified_at < sa.func.coalesce(_MARKED_AT, 0)),
    ),
).order_by(objects.c.name, objects.c.modified_at.desc())
_VERSIONS_BACK = _VERSIONS.where(
    objects.c.name > sa.bindparam("after"),
    sa.or_(
        objects.c.name < sa.bindparam("before"),
        sa.and_(objects.c.name == sa.bindparam("marker"), objects.c.modified_at < sa.func.coalesce(_MARKED_AT, 0)),
    ),
).order_by(objects.c.name.desc(), objects.c.modified_at.desc())


def add(tx: Tx, new: Stored, data: bytes) -> int:
    """Insert an object and return the ``seq`` of its row; ``new.seq`` is ignored."""
    stored = tx.secrets.encrypt_bytes(data) if new.encrypted else data
    return int(tx.scalar(_ADD, {**_OBJECTS.encode(new, tx.secrets), "data": stored}))


def current(tx: Tx, account: str, container: str, name: str) -> Stored | None:
    """Return the current version of the object, which may have expired or be a deletion marker, or None."""
    return _OBJECTS.first(tx, _CURRENT, {"account": account, "container": container, "name": name})


def version(tx: Tx, account: str, container: str, name: str, wanted: str) -> Stored | None:
    """
    Return a version of the object, or None.

    ``wanted`` is the id of a version, or ``"null"`` for the one written while the container did not keep versions.
    """
    return _OBJECTS.first(tx, *_of_version(account, container, name, wanted))


def whole(tx: Tx, account: str, container: str, name: str, wanted: str | None) -> tuple[Stored, bytes] | None:
    """
    Return a version of the object with its data, or None. ``wanted`` is as in ``version``; None: the current version.
    """
    query, values = _of_version(account, container, name, wanted)
    row = tx.execute_fast(_WHOLE[query], values)
    if row is None:
        return None
    stored, data = _OBJECTS.decode(row, tx.secrets), bytes(row[-1])
    return stored, tx.secrets.decrypt_bytes(data) if stored.encrypted else data


def _of_version(account: str, container: str, name: str, wanted: str | None) -> tuple[sa.Select[Any], dict[str, str]]:
    """Return the query for a version, as in ``whole``, and its parameters."""
    values = {"account": account, "container": container, "name": name}
    if wanted is None:
        return _CURRENT, values
    return (_UNNAMED, values) if wanted == "null" else (_VERSION, {**values, "version": wanted})


def by_seq(tx: Tx, seq: int) -> Stored | None:
    """Return the row with this ``seq``, without its data, or None."""
    return _OBJECTS.find(tx, seq)


def newest(tx: Tx, account: str, container: str, name: str) -> Stored | None:
    """Return the latest row of this name, current or not, or None."""
    return _OBJECTS.first(tx, _NEWEST, {"account": account, "container": container, "name": name})


def last_with(tx: Tx, account: str, container: str, prefix: str) -> Stored | None:
    """Return the last object, in the order of names, whose name has this prefix, or None."""
    prefixed = {"low": prefix, "high": listings.after_prefix(prefix)}
    return _OBJECTS.first(tx, _LAST_BETWEEN, {"account": account, "container": container, **prefixed})


def mark_replaced(tx: Tx, seq: int, at: int | None) -> None:
    """Record when a newer version replaced this one. ``at`` None: this version is the current one again."""
    tx.execute_fast(_SET_REPLACED, {"key_seq": seq, "replaced_at": at})


def move(tx: Tx, seq: int, container: str, name: str, at: int) -> None:
    """Move a row to another container and name."""
    tx.execute_fast(_MOVE, {"key_seq": seq, "container": container, "name": name, "modified_at": at})


def change(
    tx: Tx, seq: int, *, headers: Mapping[str, str], content_type: str, delete_at: int | None, modified_at: int
) -> None:
    """Replace an object's headers, content type and time of expiry, without its data."""
    values = {"headers": rows.dump(headers), "content_type": content_type, "delete_at": delete_at}
    tx.execute_fast(_CHANGE, {"key_seq": seq, "modified_at": modified_at, **values})


def delete(tx: Tx, seq: int) -> None:
    """Delete a row."""
    _OBJECTS.delete(tx, seq)


def delete_all(tx: Tx, account: str, container: str) -> None:
    """Delete all objects and versions of a container."""
    tx.execute_fast(_DELETE_ALL, {"account": account, "container": container})


def delete_expired(tx: Tx, account: str, container: str) -> tuple[int, int, int]:
    """
    Delete the expired objects of a container; return (objects, bytes, rows that only a listing of versions contains).
    """
    values = {"account": account, "container": container, "now": rows.to_micros(tx.now)}
    deleted = tx.fetch_all(_DELETE_EXPIRED, values)
    current = sum(replaced_at is None and not is_marker for _, replaced_at, is_marker in deleted)
    return current, sum(size for size, _, _ in deleted), len(deleted) - current


def page(tx: Tx, account: str, container: str, part: Page) -> list[Entry]:
    """Return a page of the listing of a container's current objects."""
    values = {"account": account, "container": container, "now": rows.to_micros(tx.now)}
    return listings.page(tx, _LISTED, values, part)


def versions(tx: Tx, account: str, container: str, part: Page) -> list[Entry]:
    """Return a page of the listing of all versions, newest first for each name. Does not support a delimiter."""
    values = {"account": account, "container": container, "now": rows.to_micros(tx.now), "limit": part.limit}
    values |= {**listings.bounds(part), "marker": part.marker, "version_marker": part.version_marker}
    result = tx.run(_VERSIONS_BACK if part.reverse else _VERSIONS_ON, values).mappings()
    return [Entry(**{**row, "latest": bool(row["latest"])}) for row in result]
