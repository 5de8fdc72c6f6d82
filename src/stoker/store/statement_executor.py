"""
Execution of statements on one connection, by the driver directly.

SQLAlchemy compiles each statement once. Its own execution takes most of the time of a query for one row: 0.06 of 0.08
ms on SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg as postgresql

_DIALECTS: Mapping[str, sa.Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]  # SQLAlchemy has no annotation here
}
_DRIVER_ERRORS = (sqlite3.Error, psycopg.Error)


class _Plain(NamedTuple):
    """A statement as the driver executes it: its text, the order of its parameters on SQLite, and its constants."""

    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]


@cache
def _plain(statement: sa.ClauseElement, names: tuple[str, ...], dialect: str) -> _Plain:
    compiled = cast(Any, statement.compile(dialect=_DIALECTS[dialect], column_keys=names))
    order = tuple(compiled.positiontup or ())
    constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    assert "POSTCOMPILE" not in str(compiled), f"a statement with a list needs ``run``: {compiled}"
    return _Plain(str(compiled), order, constants)


class StatementExecutor:
    """
    Executes statements on ``connection``. A transaction inherits this class, because its methods run for every query.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._driver = cast("sqlite3.Connection | psycopg.Connection[Any]", connection.connection.driver_connection)
        self._is_positional = isinstance(self._driver, sqlite3.Connection)

    def run(
        self, statement: sa.Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        """Execute a statement and return its result. A sequence of values executes the statement once for each."""
        result: sa.CursorResult[Any] = self.connection.execute(statement, values)
        return result

    def execute_fast(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """
        Execute a statement and return its first row, or None. ``values`` has a value for each of its parameters.

        The method calls the driver directly. Therefore columns have the form in which they are stored, and no parameter
        may be a list.
        """
        cursor = self._execute(statement, values)
        return None if cursor.description is None else cursor.fetchone()

    def scalar(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """Execute a query as ``execute_fast`` does, and return the first value of its first row, or None."""
        row = self.execute_fast(statement, values)
        return None if row is None else row[0]

    def fetch_all(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Sequence[Any]:
        """Execute a query as ``execute_fast`` does, and return all rows."""
        rows: Sequence[Any] = self._execute(statement, values).fetchall()
        return rows

    def run_many(self, statement: sa.ClauseElement, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the values, as ``execute_fast`` does."""
        if not values:
            return
        sql, names, constants = _plain(statement, tuple(values[0]), self.connection.dialect.name)
        rows: Sequence[Any] = [{**constants, **row} for row in values] if constants else values
        if self._is_positional:
            rows = [[row[name] for name in names] for row in rows]
        try:
            self._driver.cursor().executemany(sql, rows)
        except _DRIVER_ERRORS as error:
            raise self._wrap(sql, error) from error

    def _execute(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """Execute a statement and return the driver's cursor."""
        sql, names, constants = _plain(statement, tuple(values), self.connection.dialect.name)
        if constants:
            values = {**constants, **values}
        try:
            return self._driver.execute(sql, [values[name] for name in names] if self._is_positional else values)
        except _DRIVER_ERRORS as error:
            raise self._wrap(sql, error) from error

    def _wrap(self, sql: str, error: Exception) -> sa.exc.DBAPIError:
        """Return an error of the driver in the form in which SQLAlchemy raises it, without the parameters."""
        if isinstance(self._driver, psycopg.Connection) and self._driver.closed:
            self.connection.invalidate(error)  # the pool must not hand it out again
        wrapped = sa.exc.DBAPIError.instance(sql, None, error, Exception, hide_parameters=True)
        assert isinstance(wrapped, sa.exc.DBAPIError), "SQLAlchemy wraps every error of the driver"
        return wrapped
