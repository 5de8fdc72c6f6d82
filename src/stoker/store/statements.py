"""
Builders of the usual statements on one table, for constants at module level.

A parameter has the name of its column. In an UPDATE, the parameters of the condition begin with ``key_``, because the
same column may get a new value.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles


def equal(table: sa.Table, *names: str, prefix: str = "") -> list[sa.ColumnElement[bool]]:
    """Return the conditions ``column = :<prefix><column>``."""
    return [table.c[name] == sa.bindparam(f"{prefix}{name}") for name in names]


class AnyOf(sa.ColumnElement[bool]):
    """
    The condition that ``column`` is one of the texts in the JSON list ``:<name>``.

    One parameter for any number of values: the statement is the same for all, and suits ``Tx.fetch_all``.
    """

    inherit_cache = False
    type = sa.Boolean()

    def __init__(self, column: sa.ColumnElement[Any], name: str = "ids") -> None:
        self.column = column
        self.values = sa.bindparam(name, type_=sa.Text())

    def self_group(self, against: Any = None) -> AnyOf:
        """Return the condition itself. By default, SQLAlchemy compares it with 1, and SQLite would use no index."""
        return self


@compiles(AnyOf, "sqlite")
def _any_of_on_sqlite(condition: AnyOf, compiler: Any, **more: Any) -> str:
    column, values = (compiler.process(part, **more) for part in (condition.column, condition.values))
    return f"{column} IN (SELECT value FROM json_each({values}))"  # noqa: S608 — compiled SQL


@compiles(AnyOf, "postgresql")
def _any_of_on_postgresql(condition: AnyOf, compiler: Any, **more: Any) -> str:
    column, values = (compiler.process(part, **more) for part in (condition.column, condition.values))
    # An array, because PostgreSQL then uses an index, however many values it expects.
    return f"{column} = ANY (ARRAY(SELECT json_array_elements_text(CAST({values} AS json))))"


class HasLabels(sa.ColumnElement[bool]):
    """The condition that the JSON object in ``column`` has all names and values of the JSON object ``:required``."""

    inherit_cache = False
    type = sa.Boolean()

    def __init__(self, column: sa.ColumnElement[Any]) -> None:
        self.column = column
        self.required = sa.bindparam("required", type_=sa.Text())

    def self_group(self, against: Any = None) -> HasLabels:
        """Return the condition itself, as ``AnyOf`` does."""
        return self


@compiles(HasLabels, "sqlite")
def _has_labels_on_sqlite(condition: HasLabels, compiler: Any, **more: Any) -> str:
    column, required = (compiler.process(part, **more) for part in (condition.column, condition.required))
    return (
        f"NOT EXISTS (SELECT 1 FROM json_each({required}) AS wanted WHERE NOT EXISTS (SELECT 1"  # noqa: S608 — compiled SQL
        f" FROM json_each({column}) AS label WHERE label.key = wanted.key AND label.value = wanted.value))"
    )


@compiles(HasLabels, "postgresql")
def _has_labels_on_postgresql(condition: HasLabels, compiler: Any, **more: Any) -> str:
    column, required = (compiler.process(part, **more) for part in (condition.column, condition.required))
    return f"CAST({column} AS jsonb) @> CAST({required} AS jsonb)"  # as in the index on labels


def update(table: sa.Table, *names: str, key: tuple[str, ...] = ("id",)) -> sa.Update:
    """Return ``UPDATE table SET name = :name … WHERE key = :key_<key> …``."""
    conditions = equal(table, *key, prefix="key_")
    return sa.update(table).where(*conditions).values({name: sa.bindparam(name) for name in names})


def delete(table: sa.Table, *names: str) -> sa.Delete:
    """Return ``DELETE FROM table WHERE name = :name …``."""
    return sa.delete(table).where(*equal(table, *names))


def count(table: sa.Table, *names: str) -> sa.Select[int]:
    """Return ``SELECT count(*) FROM table WHERE name = :name …``."""
    return sa.select(sa.func.count()).select_from(table).where(*equal(table, *names))


def delete_expired(table: sa.Table, id: sa.Column[Any], most: int) -> sa.Delete:
    """
    Return the deletion of at most ``most`` rows whose ``expires_at`` is not after ``:at``. ``id`` identifies a row.

    Rows that another transaction has locked are skipped.
    """
    at: sa.BindParameter[int] = sa.bindparam("at", type_=sa.BigInteger)
    oldest = sa.select(id).where(table.c.expires_at <= at).order_by(table.c.expires_at).limit(most)
    return sa.delete(table).where(id.in_(oldest.with_for_update(skip_locked=True)))


def delete_oldest(table: sa.Table, at: sa.Column[Any]) -> sa.Delete:
    """
    Return the deletion of those of the ``:most`` oldest rows of a table whose time ``at`` is before ``:before``.

    Rows are added in the order of time, so the oldest have the smallest ``seq``, and the time needs no index.
    """
    first = sa.select(table.c.seq, at.label("added_at")).order_by(table.c.seq).limit(sa.bindparam("most")).subquery()
    return sa.delete(table).where(
        table.c.seq.in_(sa.select(first.c.seq).where(first.c.added_at < sa.bindparam("before")))
    )


def insert_new(table: sa.Table, *unique: str) -> sa.Insert:
    """
    Return an INSERT that does nothing if there is a row with the same values of the columns ``unique``.

    It returns one of these columns if it has inserted the row. Both databases have this syntax, but SQLAlchemy has a
    class for each; SQLite's compiler accepts that for PostgreSQL.
    """
    return postgresql.insert(table).on_conflict_do_nothing(index_elements=unique).returning(table.c[unique[0]])
