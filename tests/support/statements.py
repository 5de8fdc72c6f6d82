"""Records the statements that a store executes, on any of its connections."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import psycopg
import pytest

from stoker.store.open import Store
from stoker.store.pipeline import Pipeline, Query
from stoker.store.sqlite import SqliteConnection
from support.databases import name_of

#: Statements of no transaction: they set up and check connections, and notify other processes.
_IGNORED = re.compile("^(;|SELECT 1)$|^SET |set_config|pg_backend_pid|pg_notify|LISTEN", re.IGNORECASE)
_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@contextmanager
def _recorded_by_psycopg(database: str | None, statements: list[str], thread: int | None) -> Iterator[None]:
    """Add what pipelines and psycopg's cursors on this database execute in the thread; None: in any thread."""

    def record(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(cursor: psycopg.Cursor[Any], query: Any, *arguments: Any, **named: Any) -> Any:
            is_counted = cursor.connection.info.dbname == database and thread in (None, get_ident())
            if is_counted and not _IGNORED.search(str(query)):
                statements.append(str(query))
            return method(cursor, query, *arguments, **named)

        return call

    run = Pipeline.run

    def record_batch(pipeline: Pipeline, queries: Sequence[Query], *, commits: bool = False) -> Any:
        if pipeline.connection.info.dbname == database and thread in (None, get_ident()):
            # Rows of one statement are one statement.
            executed = dict.fromkeys(sql.decode() for sql, _ in queries)
            statements.extend(text for text in executed if not _IGNORED.search(text))
        return run(pipeline, queries, commits=commits)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("execute", "executemany"):
            patch.setattr(psycopg.Cursor, name, record(getattr(psycopg.Cursor, name)))
        patch.setattr(Pipeline, "run", record_batch)
        yield


@contextmanager
def recorded_statements(store: Store, *, only_own: bool = False) -> Iterator[list[str]]:
    """
    Yield the list of statements that the store's connections execute inside the block.

    ``only_own``: without those of other threads, which check connections or send notifications at any time.
    """
    statements: list[str] = []
    thread = get_ident() if only_own else None
    if store.dialect != "sqlite":
        with _recorded_by_psycopg(name_of(store.url), statements, thread):
            yield statements
        return

    connections: list[sqlite3.Connection] = []

    def trace(statement: str) -> None:
        if thread in (None, get_ident()) and statement.lstrip("( ").upper().startswith(_VERBS):
            statements.append(statement)

    def attach(connection: sqlite3.Connection) -> None:
        connection.set_trace_callback(trace)
        connections.append(connection)

    take = store.pool._take

    def take_attached() -> SqliteConnection:
        connection: SqliteConnection = take()
        attach(connection.driver)
        return connection

    # The pool's connections when they are used; the writer keeps its own.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.pool, "_take", take_attached)
        attach(store.write(lambda tx: tx.connection.driver))
        yield statements
    for connection in connections:
        connection.set_trace_callback(None)
