"""
Execution of statements on one connection, by the driver directly.

SQLAlchemy compiles each statement once. Its own execution takes most of the time of a query for one row: 0.06 of 0.08
ms on SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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


#: PostgreSQL ended the session, because the transaction was idle, or took too long. psycopg has no OperationalError for
#: these, and the connection may not know yet that it is closed.
_ENDED = ("25P03", "25P04")


def is_ended(error: BaseException) -> bool:
    """Return whether PostgreSQL ended the session because of a limit of its transactions."""
    return getattr(error, "sqlstate", None) in _ENDED


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
        #: Statements of ``put`` that were not sent yet, each with its values, in the order of their first use.
        self._unsent: dict[sa.ClauseElement, list[Mapping[str, Any]]] = {}

    def run(
        self, statement: sa.Executable, values: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> sa.CursorResult[Any]:
        """Execute a statement and return its result. A sequence of values executes the statement once for each."""
        self.send()
        result: sa.CursorResult[Any] = self.connection.execute(statement, values)
        return result

    def put(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> None:
        """
        Write a row later: with the next other statement, or at the end of the transaction.

        The rows of one statement are sent together, and on PostgreSQL all of them in one round trip. Rows of different
        statements may change places, so the method is for writes whose order does not matter. Parameters have the form
        that ``execute_fast`` expects, and nothing is returned.
        """
        self._unsent.setdefault(statement, []).append(values)

    def send(self) -> None:
        """Execute the statements of ``put``."""
        if self._unsent:
            with self._pipeline(len(self._unsent) > 1):
                self._execute_unsent()

    def _execute_unsent(self) -> None:
        unsent, self._unsent = self._unsent, {}
        for statement, values in unsent.items():
            self._execute_many(statement, values)

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
        if values:
            self.send()
            self._execute_many(statement, values)

    def _execute_many(self, statement: sa.ClauseElement, values: Sequence[Mapping[str, Any]]) -> None:
        sql, names, constants = _plain(statement, tuple(values[0]), self.connection.dialect.name)
        rows: Sequence[Any] = [{**constants, **row} for row in values] if constants else values
        if self._is_positional:
            rows = [[row[name] for name in names] for row in rows]
        try:
            if len(rows) == 1:
                self._driver.execute(sql, rows[0])
            else:
                self._driver.cursor().executemany(sql, rows)
        except _DRIVER_ERRORS as error:
            raise self._wrap(sql, error) from error

    def _execute(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """Execute a statement, after those of ``put`` and in the same round trip, and return the driver's cursor."""
        if not self._unsent:
            return self._execute_one(statement, values)
        with self._pipeline():
            self._execute_unsent()
            return self._execute_one(statement, values)

    def _execute_one(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        sql, names, constants = _plain(statement, tuple(values), self.connection.dialect.name)
        if constants:
            values = {**constants, **values}
        try:
            return self._driver.execute(sql, [values[name] for name in names] if self._is_positional else values)
        except _DRIVER_ERRORS as error:
            raise self._wrap(sql, error) from error

    @contextmanager
    def _pipeline(self, is_needed: bool = True) -> Iterator[None]:
        """Send the statements of the block to PostgreSQL without waiting for the result of each."""
        if self._is_positional or not is_needed:
            yield
            return
        assert isinstance(self._driver, psycopg.Connection)
        try:
            with self._driver.pipeline():
                yield
        except psycopg.Error as error:  # an error of a statement is known at the end of the block
            raise self._wrap("", error) from error

    def _wrap(self, sql: str, error: Exception) -> sa.exc.DBAPIError:
        """Return an error of the driver in the form in which SQLAlchemy raises it, without the parameters."""
        if isinstance(self._driver, psycopg.Connection) and (self._driver.closed or is_ended(error)):
            self.connection.invalidate(error)  # the pool must not hand it out again
            error = psycopg.OperationalError(str(error)) if is_ended(error) else error
        wrapped = sa.exc.DBAPIError.instance(sql, None, error, Exception, hide_parameters=True)
        assert isinstance(wrapped, sa.exc.DBAPIError), "SQLAlchemy wraps every error of the driver"
        return wrapped
