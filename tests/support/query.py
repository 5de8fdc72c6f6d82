"""Statements of tests in a transaction, with parameters ``:name``, in the form in which columns are stored."""

from __future__ import annotations

from typing import Any

from stoker.store.sql import compose
from stoker.store.tx import Tx


def scalar(tx: Tx, text: str, **values: Any) -> Any:
    """Return the first value of the first row, or None."""
    return tx.scalar(compose(text), values)


def column(tx: Tx, text: str, **values: Any) -> list[Any]:
    """Return the first value of each row."""
    return [row[0] for row in tx.fetch_all(compose(text), values)]


def rows(tx: Tx, text: str, **values: Any) -> list[tuple[Any, ...]]:
    """Return all rows."""
    return [tuple(row) for row in tx.fetch_all(compose(text), values)]


def change(tx: Tx, text: str, **values: Any) -> int:
    """Execute a statement that changes rows, and return their number."""
    return tx.change(compose(text), values)


def insert(tx: Tx, table: str, **values: Any) -> None:
    """Insert a row."""
    names = ", ".join(f'"{name}"' for name in values)
    change(tx, f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in values)})", **values)


def count(tx: Tx, table: str) -> int:
    """Return the number of rows of a table."""
    return int(scalar(tx, f"SELECT count(*) FROM {table}"))
