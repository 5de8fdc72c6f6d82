"""Execution of statements on one connection: those that return nothing wait for the next round trip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from stoker.store.statement_drivers import Batch, Rows, open_driver


class StatementExecutor:
    """
    Executes statements on ``connection``. A transaction inherits this class, because its methods run for every query.
    """

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self._driver = open_driver(connection)
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

        On PostgreSQL, all of these rows are sent in one round trip, with the statement or the commit that follows. Rows
        of different statements may change places, so the method is for writes whose order does not matter. Parameters
        have the form that ``execute_fast`` expects, and nothing is returned.
        """
        self._unsent.setdefault(statement, []).append(values)

    def send(self) -> None:
        """Execute the statements of ``put``."""
        if self._unsent:
            self._driver.execute(self._take_unsent())

    def commit(self) -> None:
        """Execute the statements of ``put`` and commit, in one round trip. Only on PostgreSQL."""
        self._driver.commit(self._take_unsent())

    def execute_fast(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """
        Execute a statement and return its first row, or None. ``values`` has a value for each of its parameters.

        The method calls the driver directly. Therefore columns have the form in which they are stored, and no parameter
        may be a list.
        """
        return self._execute(statement, (values,)).fetchone()

    def scalar(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Any:
        """Execute a query as ``execute_fast`` does, and return the first value of its first row, or None."""
        row = self.execute_fast(statement, values)
        return None if row is None else row[0]

    def fetch_all(self, statement: sa.ClauseElement, values: Mapping[str, Any]) -> Sequence[Any]:
        """Execute a query as ``execute_fast`` does, and return all rows."""
        return self._execute(statement, (values,)).fetchall()

    def run_many(self, statement: sa.ClauseElement, values: Sequence[Mapping[str, Any]]) -> None:
        """Execute a statement for each of the values, as ``execute_fast`` does."""
        if values:
            self._execute(statement, values)

    def _execute(self, statement: sa.ClauseElement, values: Sequence[Mapping[str, Any]]) -> Rows:
        """Execute a statement, after those of ``put``."""
        last = (statement, values)
        return self._driver.execute((*self._take_unsent(), last) if self._unsent else (last,))

    def _take_unsent(self) -> Batch:
        unsent, self._unsent = self._unsent, {}
        return unsent.items()
