"""Queries for objects and their versions. A transaction that writes an object has locked its container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Entry, Page, Stored
from stoker.store import listings, rows
from stoker.store.schema import objects
from stoker.store.tx import Tx

_IN = (objects.c.account == sa.bindparam("of"), objects.c.container == sa.bindparam("inside"))
_NAMED = (*_IN, objects.c.name == sa.bindparam("named"))
_ROW = objects.c.seq == sa.bindparam("row")
_FACTS = [column for column in objects.c if column.name != "data"]
_NOW = objects.c.replaced_at.is_(None)

_ADD = sa.insert(objects).returning(objects.c.seq)
_CURRENT = sa.select(*_FACTS).where(*_NAMED, _NOW)
_CURRENT_WHOLE = sa.select(objects).where(*_NAMED, _NOW)
_VERSION = sa.select(*_FACTS).where(*_NAMED, objects.c.version == sa.bindparam("wanted"))
_VERSION_WHOLE = sa.select(objects).where(*_NAMED, objects.c.version == sa.bindparam("wanted"))
_UNNAMED = sa.select(*_FACTS).where(*_NAMED, objects.c.version.is_(None))
_UNNAMED_WHOLE = sa.select(objects).where(*_NAMED, objects.c.version.is_(None))
_BY_SEQ = sa.select(*_FACTS).where(_ROW)
_NEWEST = sa.select(*_FACTS).where(*_NAMED).order_by(objects.c.modified_at.desc()).limit(1)
_LAST_BETWEEN = (
    sa.select(*_FACTS)
    .where(*_IN, _NOW, objects.c.name >= sa.bindparam("low"), objects.c.name < sa.bindparam("high"))
    .order_by(objects.c.name.desc())
    .limit(1)
)
_REPLACED = sa.update(objects).where(_ROW).values(replaced_at=sa.bindparam("at"))
_MOVE = (
    sa.update(objects)
    .where(_ROW)
    .values(container=sa.bindparam("to_container"), name=sa.bindparam("to_name"), modified_at=sa.bindparam("at"))
)
_CHANGE = (
    sa.update(objects)
    .where(_ROW)
    .values(
        headers=sa.bindparam("new_headers"),
        content_type=sa.bindparam("new_type"),
        delete_at=sa.bindparam("new_delete_at"),
        modified_at=sa.bindparam("at"),
    )
)
_DELETE = sa.delete(objects).where(_ROW)
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
        _other.c.account == sa.bindparam("of"),
        _other.c.container == sa.bindparam("inside"),
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
    values = {
        "account": new.account,
        "container": new.container,
        "name": new.name,
        "version": new.version,
        "etag": new.etag,
        "size": new.size,
        "content_type": new.content_type,
        "headers": rows.dump(new.headers),
        "modified_at": new.modified_at,
        "delete_at": new.delete_at,
        "replaced_at": new.replaced_at,
        "marker": new.marker,
        "encrypted": new.encrypted,
        "data": tx.secrets.encrypt_bytes(data) if new.encrypted else data,
    }
    seq: int = tx.run(_ADD, values).scalar_one()
    return seq


def current(tx: Tx, account: str, container: str, name: str) -> Stored | None:
    """Return the current version of the object, which may have expired or be a deletion marker, or None."""
    row = tx.run(_CURRENT, {"of": account, "inside": container, "named": name}).first()
    return None if row is None else _from_row(row)


def version(tx: Tx, account: str, container: str, name: str, wanted: str) -> Stored | None:
    """
    Return a version of the object, or None.

    ``wanted`` is the id of a version, or ``"null"`` for the one written while the container did not keep versions.
    """
    row = _row(tx, account, container, name, wanted, (_VERSION, _UNNAMED))
    return None if row is None else _from_row(row)


def whole(tx: Tx, account: str, container: str, name: str, wanted: str | None) -> tuple[Stored, bytes] | None:
    """
    Return a version of the object with its data, or None. ``wanted`` is as in ``version``; None: the current version.
    """
    if wanted is None:
        row = tx.run(_CURRENT_WHOLE, {"of": account, "inside": container, "named": name}).first()
    else:
        row = _row(tx, account, container, name, wanted, (_VERSION_WHOLE, _UNNAMED_WHOLE))
    if row is None:
        return None
    data = bytes(row.data)
    return _from_row(row), tx.secrets.decrypt_bytes(data) if row.encrypted else data


def by_seq(tx: Tx, seq: int) -> Stored | None:
    """Return the row with this ``seq``, without its data, or None."""
    row = tx.run(_BY_SEQ, {"row": seq}).first()
    return None if row is None else _from_row(row)


def newest(tx: Tx, account: str, container: str, name: str) -> Stored | None:
    """Return the latest row of this name, current or not, or None."""
    row = tx.run(_NEWEST, {"of": account, "inside": container, "named": name}).first()
    return None if row is None else _from_row(row)


def last_with(tx: Tx, account: str, container: str, prefix: str) -> Stored | None:
    """Return the last object, in the order of names, whose name has this prefix, or None."""
    said = {"of": account, "inside": container, "low": prefix, "high": listings.after_prefix(prefix)}
    row = tx.run(_LAST_BETWEEN, said).first()
    return None if row is None else _from_row(row)


def mark_replaced(tx: Tx, seq: int, at: int | None) -> None:
    """Record when a newer version replaced this one. ``at`` None: this version is the current one again."""
    tx.run(_REPLACED, {"row": seq, "at": at})


def move(tx: Tx, seq: int, container: str, name: str, at: int) -> None:
    """Move a row to another container and name."""
    tx.run(_MOVE, {"row": seq, "to_container": container, "to_name": name, "at": at})


def change(
    tx: Tx, seq: int, *, headers: Mapping[str, str], content_type: str, delete_at: int | None, modified_at: int
) -> None:
    """Replace an object's headers, content type and time of expiry, without its data."""
    said = {"new_headers": rows.dump(headers), "new_type": content_type, "new_delete_at": delete_at}
    tx.run(_CHANGE, {"row": seq, "at": modified_at, **said})


def delete(tx: Tx, seq: int) -> None:
    """Delete a row."""
    tx.run(_DELETE, {"row": seq})


def delete_all(tx: Tx, account: str, container: str) -> None:
    """Delete all objects and versions of a container."""
    tx.run(_DELETE_ALL, {"of": account, "inside": container})


def delete_expired(tx: Tx, account: str, container: str) -> tuple[int, int, int]:
    """
    Delete the expired objects of a container; return (objects, bytes, rows that only a listing of versions contains).
    """
    gone = tx.run(_DELETE_EXPIRED, {"of": account, "inside": container, "now": rows.to_micros(tx.now)}).all()
    seen = sum(row.replaced_at is None and not row.marker for row in gone)
    return seen, sum(row.size for row in gone), len(gone) - seen


def page(tx: Tx, account: str, container: str, asked: Page) -> list[Entry]:
    """Return a page of the listing of a container's current objects."""
    said = {"of": account, "inside": container, "now": rows.to_micros(tx.now)}
    return listings.page(tx, _LISTED, said, asked)


def versions(tx: Tx, account: str, container: str, asked: Page) -> list[Entry]:
    """Return a page of the listing of all versions, newest first for each name. Does not support a delimiter."""
    said = {"of": account, "inside": container, "now": rows.to_micros(tx.now), "limit": asked.limit}
    said |= {**listings.bounds(asked), "marker": asked.marker, "version_marker": asked.version_marker}
    found = tx.run(_VERSIONS_BACK if asked.reverse else _VERSIONS_ON, said).mappings()
    return [Entry(**{**row, "latest": bool(row["latest"])}) for row in found]


def _row(tx: Tx, account: str, container: str, name: str, wanted: str, statements: Any) -> Any:
    named, unnamed = statements
    said = {"of": account, "inside": container, "named": name}
    if wanted == "null":
        return tx.run(unnamed, said).first()
    return tx.run(named, {**said, "wanted": wanted}).first()


def _from_row(row: Any) -> Stored:
    return Stored(
        seq=row.seq,
        account=row.account,
        container=row.container,
        name=row.name,
        version=row.version,
        etag=row.etag,
        size=row.size,
        content_type=row.content_type,
        headers=rows.load(row.headers),
        modified_at=row.modified_at,
        delete_at=row.delete_at,
        replaced_at=row.replaced_at,
        marker=bool(row.marker),
        encrypted=bool(row.encrypted),
    )
