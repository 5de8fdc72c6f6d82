"""Execution of statements on one connection; on SQLite by the driver directly."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite


class _Plain(NamedTuple):
    """A statement as SQLite's driver executes it: its text, the order of its parameters, and its constants."""

    sql: str
    names: tuple[str, ...]
    constants: Mapping[str, Any]


@cache
def _plain(statement: sa.ClauseElement, names: tuple[str, ...]) -> _Plain:
    compiled = cast(Any, statement.compile(dialect=sqlite.dialect(), column_keys=names))
    order = tuple(compiled.positiontup or ())
    constants = {name: compiled.binds[name].value for name in order if not compiled.binds[name].required}
    assert "POSTCOMPILE" not in str(compiled), f"a statement with a list needs ``run``: {compiled}"
    return _Plain(str(compiled), order, constants)


def _wrap(sql: str, error: sqlite3.Error) -> sa.exc.DBAPIError:
    """Return an error of the driver in the form in which SQLAlchemy raises it, without the parameters."""
    wrapped = sa.exc.DBAPIError.instance(sql, None, error, sqlite3.Error, hide_parameters=True)
    assert isinstance(wrapped, sa.exc.DBAPIError), "SQLAlchemy wraps every error of the driver"
    return wrapped


class StatementExecutor:
    """
    Executes statements on ``connection``. A transaction inherits this class, because its methods run for every query.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        driver = connection.connection.driver_connection
        self._driver = driver if isinstance(driver, sqlite3.Connection) else None

    def run(
        self, statement: sa.Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        """Execute a statement and return its result. A sequence of values executes the statement once for each."""
        result: sa.CursorResult[Any] = self.connection.execute(statement, values)
        return result

    def execute_fast(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """
        Execute a statement and return its first row, or None. ``values`` has a value for each of its parameters.

        On SQLite, the method calls the driver directly, which saves SQLAlchemy's share of the time (0.06 of 0.08 ms).
        Therefore columns have the form in which they are stored, and no parameter may be a list.
        """
        driver = self._driver
        if driver is None:
            result = self.connection.execute(cast(sa.Executable, statement), values)
            return result.first() if result.returns_rows else None
        sql, names, constants = _plain(statement, tuple(values))
        if constants:
            values = {**constants, **values}
        try:
            return driver.execute(sql, [values[name] for name in names]).fetchone()
        except sqlite3.Error as error:
            raise _wrap(sql, error) from error

    def scalar(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """Execute a query as ``execute_fast`` does, and return the first value of its first row, or None."""
        row = self.execute_fast(statement, values)
        return None if row is None else row[0]

    def fetch_all(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Sequence[Any]:
        """Execute a query as ``execute_fast`` does, and return all rows."""
        driver = self._driver
        if driver is None:
            return self.connection.execute(cast(sa.Executable, statement), values).all()
        sql, names, constants = _plain(statement, tuple(values))
        if constants:
            values = {**constants, **values}
        try:
            return driver.execute(sql, [values[name] for name in names]).fetchall()
        except sqlite3.Error as error:
            raise _wrap(sql, error) from error

    def run_many(self, statement: sa.ClauseElement, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the values; on SQLite by the driver directly, as in ``execute_fast``."""
        if not values:
            return
        driver = self._driver
        if driver is None:
            self.connection.execute(cast(sa.Executable, statement), values)
            return
        sql, names, constants = _plain(statement, tuple(values[0]))
        if constants:
            values = [{**constants, **row} for row in values]
        try:
            driver.executemany(sql, [[row[name] for name in names] for row in values])
        except sqlite3.Error as error:
            raise _wrap(sql, error) from error
