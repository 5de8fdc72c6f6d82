"""Execution of statements on one connection: those that return nothing wait for the next round trip."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from stoker.store import sql as sqls
from stoker.store.connection import Batch, Connection, Rows
from stoker.store.faults import DatabaseError
from stoker.store.sql import Statement, sql

_SAVEPOINT, _ROLLBACK = sql("SAVEPOINT part"), sql("ROLLBACK TO SAVEPOINT part")
_RELEASE = sql("RELEASE SAVEPOINT part")
#: Rows in one statement at most.
_MOST_ROWS = 50


class StatementExecutor:
    """
    Executes statements on ``connection``. A transaction inherits this class, because its methods run for every query.
    """

    #: Errors of the database, after which the transaction cannot continue.
    FAULTS = (DatabaseError,)

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Statements of ``put`` that were not sent yet, in their order, each with the values of successive calls.
        self._unsent: list[tuple[Statement, list[Mapping[str, Any]]]] = []
        #: Rows, as stored, that a write transaction has read and locked in advance, by kind and id.
        self.preloaded: dict[tuple[str, ...], Any] = {}

    def put(self, statement: Statement, values: Mapping[str, Any]) -> None:
        """
        Write a row later: with the next other statement, or at the end of the transaction.

        On PostgreSQL, all of these rows are sent in one round trip, in the order of the calls, with the statement or
        the commit that follows. Parameters have the form that ``execute_fast`` expects, and nothing is returned.
        """
        if self._unsent and self._unsent[-1][0] is statement:
            self._unsent[-1][1].append(values)
        else:
            self._unsent.append((statement, [values]))

    def put_rows(self, table: str, values: Sequence[Mapping[str, Any]], end: str = "") -> None:
        """Insert rows later, as ``put`` does, many in one statement. ``end`` is what follows their values."""
        for first in range(0, len(values), _MOST_ROWS):
            portion = values[first : first + _MOST_ROWS]
            statement = sqls.insert_rows(table, tuple(portion[0]), len(portion), end)
            numbered = {f"{name}_{row}": item for row, names in enumerate(portion) for name, item in names.items()}
            self.put(statement, numbered)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """
        Undo the writes of the block if it raises. An error of the database is not undone: the transaction fails.

        The statements of the savepoint are sent with the next ones, so they cost no round trip.
        """
        self.put(_SAVEPOINT, {})
        begin = self._unsent[-1]
        try:
            yield
        except self.FAULTS:
            raise
        except Exception:
            position = next((i for i, entry in enumerate(self._unsent) if entry is begin), None)
            del self._unsent[position or 0 :]
            self.preloaded.clear()  # rows may have been read after the writes
            if position is None:  # the savepoint was sent
                self.put(_ROLLBACK, {})
                self.put(_RELEASE, {})
            raise
        self.put(_RELEASE, {})

    def send(self) -> None:
        """Execute the statements of ``put``."""
        if self._unsent:
            self.connection.execute(self._take_unsent())

    def commit(self) -> None:
        """Execute the statements of ``put`` and commit, in one round trip. Only on PostgreSQL."""
        self.connection.commit(self._take_unsent())

    def execute_fast(self, statement: Statement, values: Mapping[str, Any]) -> Any:
        """
        Execute a statement and return its first row, or None. ``values`` has a value for each of its parameters.

        The method calls the driver directly. Therefore columns have the form in which they are stored, and no parameter
        may be a list.
        """
        return self._execute(statement, (values,)).fetchone()

    def scalar(self, statement: Statement, values: Mapping[str, Any]) -> Any:
        """Execute a query as ``execute_fast`` does, and return the first value of its first row, or None."""
        row = self.execute_fast(statement, values)
        return None if row is None else row[0]

    def fetch_all(self, statement: Statement, values: Mapping[str, Any]) -> Sequence[Any]:
        """Execute a query as ``execute_fast`` does, and return all rows."""
        return self._execute(statement, (values,)).fetchall()

    def change(self, statement: Statement, values: Mapping[str, Any]) -> int:
        """Execute an UPDATE, a DELETE or an INSERT as ``execute_fast`` does, and return the number of its rows."""
        return self._execute(statement, (values,)).rowcount

    def run_many(self, statement: Statement, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the values, as ``execute_fast`` does."""
        if values:
            self._execute(statement, values)

    def _execute(self, statement: Statement, values: Sequence[Mapping[str, Any]]) -> Rows:
        """Execute a statement, after those of ``put``."""
        last = (statement, values)
        return self.connection.execute((*self._take_unsent(), last) if self._unsent else (last,))

    def _take_unsent(self) -> Batch:
        unsent, self._unsent = self._unsent, []
        return unsent
