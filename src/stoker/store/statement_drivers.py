"""
Execution of compiled statements by the databases' drivers directly.

SQLAlchemy compiles each statement once. Its own execution takes most of the time of a query for one row: 0.06 of 0.08
ms on SQLite.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.postgresql import psycopg as postgresql

from stoker.store.pipeline import Pipeline, Query

#: Statements in the order of their execution, each with the values of its parameters, once for each execution.
Batch = Iterable[tuple[sa.ClauseElement, Sequence[Mapping[str, Any]]]]

_DIALECTS: Mapping[str, sa.Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.dialect(paramstyle="numeric_dollar"),  # type: ignore[no-untyped-call]  # no annotation
}
#: PostgreSQL ended the session, because the transaction was idle, or took too long. psycopg has no OperationalError for
#: these, and the connection may not know yet that it is closed.
_ENDED = ("25P03", "25P04")
#: The key of the pipeline in the pool's data of a connection to PostgreSQL.
PIPELINE = "pipeline"


def is_ended(error: BaseException) -> bool:
    """Return whether PostgreSQL ended the session because of a limit of its transactions."""
    return getattr(error, "sqlstate", None) in _ENDED


class CompiledStatement(NamedTuple):
    """A statement as the driver executes it: its text, the order of its parameters, and its constants."""

    sql: str
    encoded: bytes
    names: tuple[str, ...]
    constants: Mapping[str, Any]

    def arrange(self, values: Mapping[str, Any]) -> Sequence[Any]:
        """Return the values in the order of the parameters."""
        if self.constants:
            values = {**self.constants, **values}
        return [values[name] for name in self.names]


@cache
def compile_statement(statement: sa.ClauseElement, names: tuple[str, ...], dialect: str) -> CompiledStatement:
    """Compile a statement for values with these names."""
    compiled = cast(Any, statement.compile(dialect=_DIALECTS[dialect], column_keys=names))
    constants = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    sql = str(compiled)
    assert "POSTCOMPILE" not in sql, f"a statement with a list needs ``run``: {sql}"
    return CompiledStatement(sql, sql.encode(), tuple(compiled.positiontup or ()), constants)


class Rows(Protocol):
    """The result of a statement. A statement that returns nothing has no rows."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> Sequence[Any]:
        """Return the other rows."""


class StatementDriver(Protocol):
    """A connection that executes statements without SQLAlchemy."""

    def execute(self, batch: Batch) -> Rows:
        """Execute a batch in the transaction, and return the rows of its last statement. Raises sa.exc.DBAPIError."""

    def commit(self, batch: Batch) -> None:
        """Execute a batch, and commit the transaction. Raises sa.exc.DBAPIError."""


def open_driver(connection: sa.Connection) -> StatementDriver:
    """Return the driver of a connection."""
    pooled = connection.connection
    driver = pooled.driver_connection
    if isinstance(driver, sqlite3.Connection):
        return _SqliteDriver(driver)
    return _PostgresqlDriver(connection, pooled.info[PIPELINE])


class _SqliteDriver:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, batch: Batch) -> Rows:
        cursor: sqlite3.Cursor | None = None
        for statement, rows in batch:
            compiled = compile_statement(statement, tuple(rows[0]), "sqlite")
            try:
                if len(rows) == 1:
                    cursor = self._connection.execute(compiled.sql, compiled.arrange(rows[0]))
                else:
                    cursor = self._connection.executemany(compiled.sql, map(compiled.arrange, rows))
            except sqlite3.Error as error:
                raise _wrap(compiled.sql, error) from error
        assert cursor is not None, "the batch is empty"
        return cursor

    def commit(self, batch: Batch) -> None:
        raise NotImplementedError("one transaction of SQLite has the work of several callers")


class _LoadedRows:
    __slots__ = ("_rows",)

    def __init__(self, rows: Sequence[Any]) -> None:
        self._rows = rows

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> Sequence[Any]:
        return self._rows


class _PostgresqlDriver:
    def __init__(self, connection: sa.Connection, pipeline: Pipeline) -> None:
        self._connection = connection
        self._pipeline = pipeline

    def execute(self, batch: Batch) -> Rows:
        return _LoadedRows(self._run(batch))

    def commit(self, batch: Batch) -> None:
        self._run(batch, commits=True)

    def _run(self, batch: Batch, *, commits: bool = False) -> Sequence[Any]:
        queries: list[Query] = []
        for statement, rows in batch:
            compiled = compile_statement(statement, tuple(rows[0]), "postgresql")
            queries += [(compiled.encoded, compiled.arrange(row)) for row in rows]
        try:
            return self._pipeline.run(queries, commits=commits)
        except psycopg.Error as error:
            if self._pipeline.connection.closed or is_ended(error):
                self._connection.invalidate(error)  # the pool must not hand it out again
                error = psycopg.OperationalError(str(error)) if is_ended(error) else error
            raise _wrap("", error) from error


def _wrap(sql: str, error: Exception) -> sa.exc.DBAPIError:
    """Return an error of the driver in the form in which SQLAlchemy raises it, without the parameters."""
    wrapped = sa.exc.DBAPIError.instance(sql, None, error, Exception, hide_parameters=True)
    assert isinstance(wrapped, sa.exc.DBAPIError), "SQLAlchemy wraps every error of the driver"
    return wrapped
