"""
Queries as functions: a statement that is called with a transaction and the values of its parameters.

A noun's module states its functions, with the types of their arguments::

    count: Callable[[Tx, str], int] = scalar("SELECT count(*) FROM configs WHERE project_id = :project_id")
    purge: Callable[[Tx, datetime], int] = change("DELETE FROM configs WHERE created_at < :before")

    count(tx, project_id)

The arguments are in the order in which the statement first names its parameters. A time, a duration, a list or a map is
converted to the form of a column, and ``:now`` is always the transaction's time. ``Repository.finder`` and
``Repository.lister`` return functions for objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from stoker.store import rows
from stoker.store.sql import Statement, sql
from stoker.store.tx import Statements, Tx

#: Executes a statement with the values of its parameters in a transaction.
Run = Callable[[Tx, Statement, Mapping[str, Any]], Any]


class Query:
    """A statement as a function. ``run`` executes the statement and returns the result of the function."""

    def __init__(self, statement: Statement, run: Run) -> None:
        self.statement = statement
        self._run = run

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The names of the arguments."""
        return tuple(name for name in self.statement.sqlite[1] if name != "now")

    def __call__(self, tx: Tx, *arguments: Any) -> Any:
        """Execute the statement with the values of its parameters, except for ``:now``."""
        values = dict(zip(self._names, arguments, strict=True))
        for name, value in values.items():
            if type(value) not in _STORED:
                values[name] = _to_column(value)
        if len(self._names) < len(self.statement.sqlite[1]):
            values["now"] = rows.to_micros(tx.now)
        return self._run(tx, self.statement, values)


#: The types of values that are stored as they are.
_STORED = frozenset((str, int, bool, bytes, type(None)))


def _to_column(value: Any) -> Any:
    if isinstance(value, str):  # an enumeration
        return value
    if isinstance(value, datetime):
        return rows.to_micros(value)
    if isinstance(value, timedelta):
        return rows.to_duration(value)
    return rows.dump(value if isinstance(value, Mapping) else list(value))


def scalar(text: str) -> Callable[..., Any]:
    """Return a function for the first value of the first row, or None."""
    return Query(sql(text), Statements.scalar)


def column(text: str) -> Callable[..., list[Any]]:
    """Return a function for the first values of all rows."""
    return Query(sql(text), lambda tx, statement, values: [row[0] for row in tx.fetch_all(statement, values)])


def table(text: str) -> Callable[..., list[tuple[Any, ...]]]:
    """Return a function for all rows, as tuples."""
    return Query(sql(text), lambda tx, statement, values: [tuple(row) for row in tx.fetch_all(statement, values)])


def exists(text: str) -> Callable[..., bool]:
    """Return a function that tells whether the statement returns a row."""
    return Query(sql(text), lambda tx, statement, values: tx.execute_fast(statement, values) is not None)


def change(text: str) -> Callable[..., int]:
    """Return a function that executes an UPDATE, a DELETE or an INSERT. It returns the number of changed rows."""
    return Query(sql(text), Statements.change)


def execute(text: str) -> Callable[..., None]:
    """Return a function that executes a statement without a result."""
    return Query(sql(text), Statements.execute_fast)


def put(text: str) -> Callable[..., None]:
    """Return a function that executes a statement with the next other statement (``Tx.put``)."""
    return Query(sql(text), Statements.put)


def delete_oldest(table: str) -> Callable[[Tx, datetime, int], int]:
    """
    Return ``purge(tx, before, most)``: delete, among the ``most`` oldest rows, those whose time ``at`` is before
    ``before``; return their number.

    Rows are added in the order of time, so the oldest have the smallest ``seq``, and the time needs no index.
    """
    oldest = f"SELECT seq, at FROM {table} ORDER BY seq LIMIT :most"
    return change(f"DELETE FROM {table} WHERE at < :before AND seq IN (SELECT seq FROM ({oldest}) AS oldest)")
