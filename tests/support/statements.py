"""Records the statements that a store executes, including those that bypass SQLAlchemy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa

from stoker.store.open import Store

_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@contextmanager
def recorded_statements(store: Store) -> Iterator[list[str]]:
    """Yield the list of statements that the store's connections execute inside the block, also in other threads."""
    statements: list[str] = []
    if store.dialect != "sqlite":

        def record(_connection: Any, _cursor: Any, statement: str, *_arguments: Any) -> None:
            statements.append(statement)

        sa.event.listen(store.engine, "before_cursor_execute", record)
        yield statements
        sa.event.remove(store.engine, "before_cursor_execute", record)
        return

    connections: list[sqlite3.Connection] = []

    def trace(statement: str) -> None:
        if statement.lstrip("( ").upper().startswith(_VERBS):
            statements.append(statement)

    def attach(connection: Any, *_arguments: Any) -> None:
        connection.set_trace_callback(trace)
        connections.append(connection)

    # The pool's connections when they are used; the writer keeps its own.
    sa.event.listen(store.engine, "checkout", attach)
    attach(store.write(lambda tx: tx.connection.connection.driver_connection))
    yield statements
    sa.event.remove(store.engine, "checkout", attach)
    for connection in connections:
        connection.set_trace_callback(None)
