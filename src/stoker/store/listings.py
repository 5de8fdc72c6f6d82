"""
Listings of Swift's API: each page is one SQL statement, however many names a folder represents.

Names are compared by their bytes. With a delimiter, all names that contain it after the prefix form one folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa

from stoker.model.objects import Entry, Page
from stoker.store.tx import Tx

#: Sorts after every possible name: names have at most 1,024 bytes.
HIGHEST = "\U0010ffff" * 300


@dataclass(frozen=True, eq=False)
class Source:
    """The rows of a listing: the column of the names, the other columns of an entry, and the conditions."""

    name: sa.Column[Any]
    shown: Mapping[str, sa.Column[Any]]
    where: tuple[sa.ColumnElement[bool], ...]


def page(tx: Tx, source: Source, values: Mapping[str, Any], part: Page) -> list[Entry]:
    """Return a page of a listing. ``values`` are the parameters of the conditions in ``source``."""
    dialect = tx.connection.dialect.name
    parameters: dict[str, Any] = {**values, **bounds(part), "limit": part.limit}
    if part.path is not None:
        statement = _below(source, dialect, part.reverse)
        folder = f"{part.path.rstrip('/')}/" if part.path else ""
        parameters |= {"low": folder, "high": after_prefix(folder), "start": len(folder) + 1, "folder": folder}
    elif part.delimiter:
        statement = _roll_up(source, dialect, part.reverse)
        parameters |= {
            "start": len(part.prefix) + 1,
            "delimiter": part.delimiter,
            "more": len(part.prefix) + len(part.delimiter) - 1,
            "marker": part.marker,
        }
    else:
        statement = _plain(source, part.reverse)
    return [_entry(row) for row in tx.run(statement, parameters).mappings()]


def bounds(part: Page) -> dict[str, str]:
    """
    Return the page's range of names as parameters of ``between``.

    ``after`` and ``before`` are exclusive. The prefix is the range from ``low`` (inclusive) to ``high`` (exclusive).
    """
    after, before = part.marker, part.end_marker
    if part.reverse:
        after, before = before, after
    return {"after": after, "before": before or HIGHEST, "low": part.prefix, "high": after_prefix(part.prefix)}


def after_prefix(prefix: str) -> str:
    """Return the first name that sorts after all names with this prefix."""
    bare = prefix.rstrip("\U0010ffff")
    if not bare:
        return HIGHEST
    following = ord(bare[-1]) + 1
    return bare[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are not characters


def between(name: sa.ColumnElement[str]) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions for names in the range that ``bounds`` computes."""
    return (
        name > sa.bindparam("after"),
        name < sa.bindparam("before"),
        name >= sa.bindparam("low"),
        name < sa.bindparam("high"),
    )


@cache
def _plain(source: Source, reverse: bool) -> sa.Select[Any]:
    return _page_of(_plain_rows(source), source.name, reverse)


@cache
def _below(source: Source, dialect: str, reverse: bool) -> sa.Select[Any]:
    """
    Select the names directly in a folder: names without a slash after the folder, or with a slash only at the end.
    """
    rest = sa.func.substr(source.name, _number("start"))
    slash = _position(dialect, rest, sa.literal("/"))
    return _page_of(
        _plain_rows(source).where(
            sa.or_(slash == 0, slash == sa.func.length(rest)), source.name != sa.bindparam("folder")
        ),
        source.name,
        reverse,
    )


@cache
def _roll_up(source: Source, dialect: str, reverse: bool) -> sa.Select[Any]:
    rest = sa.func.substr(source.name, _number("start"))
    position = _position(dialect, rest, sa.bindparam("delimiter", type_=sa.Text))
    shorter = sa.func.substr(source.name, 1, position + _number("more"))
    # A subquery, because PostgreSQL groups by a name: it treats each use of an expression with parameters as new.
    names = (
        sa.select(
            sa.case((position > 0, shorter), else_=source.name).label("name"),
            sa.case((position > 0, 1), else_=0).label("folder"),
            *(column.label(label) for label, column in source.shown.items()),
        )
        .where(*source.where, *between(source.name))
        .subquery()
    )
    shown = (sa.func.max(names.c[label]).label(label) for label in source.shown)
    return _page_of(
        sa.select(names.c.name, sa.func.max(names.c.folder).label("folder"), *shown)
        .where(names.c.name != sa.bindparam("marker"))
        .group_by(names.c.name),
        names.c.name,
        reverse,
    )


def _plain_rows(source: Source) -> sa.Select[Any]:
    shown = (column.label(label) for label, column in source.shown.items())
    return sa.select(source.name.label("name"), *shown).where(*source.where, *between(source.name))


def _page_of(statement: sa.Select[Any], name: sa.ColumnElement[str], reverse: bool) -> sa.Select[Any]:
    return statement.order_by(name.desc() if reverse else name).limit(_number("limit"))


def _position(dialect: str, inside: sa.ColumnElement[str], what: sa.ColumnElement[str]) -> sa.ColumnElement[int]:
    """
    Return the position of ``what`` in ``inside``, from 1, or 0. The databases have different names for the function.
    """
    function = sa.func.strpos if dialect == "postgresql" else sa.func.instr
    return function(inside, what, type_=sa.Integer)


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.Integer)


def _entry(row: sa.RowMapping) -> Entry:
    values = dict(row)
    if values.pop("folder", 0):
        return Entry(name=values["name"], folder=True)
    return Entry(**values)
