"""The interface of a connection to a database, which ``sqlite`` and ``postgresql`` implement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from stoker.store.sql import Statement

#: Statements in the order of their execution, each with the values of its parameters, once for each execution.
Batch = Iterable[tuple[Statement, Sequence[Mapping[str, Any]]]]


class Rows(Protocol):
    """The result of a statement. A statement that returns nothing has no rows."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed."""

    def fetchone(self) -> Any:
        """Return the next row, or None."""

    def fetchall(self) -> Sequence[Any]:
        """Return the other rows."""


class Connection(Protocol):
    """A connection that executes statements. Both methods raise ``faults.DatabaseError``."""

    #: The name of the database: ``sqlite`` or ``postgresql``.
    dialect: str

    def execute(self, batch: Batch) -> Rows:
        """Execute a batch in the transaction, and return the rows of its last statement."""

    def commit(self, batch: Batch) -> None:
        """Execute a batch, and commit the transaction. Only on PostgreSQL."""
