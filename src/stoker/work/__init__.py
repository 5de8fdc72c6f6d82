"""
Durable jobs and deadlines: one interface (``Work``), with an implementation for each database.

A transaction defers the jobs that it makes necessary. A job runs at least once, outside any transaction, in a worker
thread, so its handler must be idempotent.
"""

from __future__ import annotations

from stoker.store.open import Store
from stoker.work.port import Handler, PermanentFailure, Work, backoff, defer_once

__all__ = ["Handler", "PermanentFailure", "Work", "backoff", "defer_once", "open_work"]


def open_work(store: Store) -> Work:
    """Return the job queue for the store's database, not started yet."""
    if store.dialect == "postgresql":
        # Imported late: Procrastinate and its pool would cost start-up time and memory on SQLite.
        from stoker.work.postgres_queue import PostgresQueue

        return PostgresQueue(store)
    from stoker.work.sqlite_queue import SqliteQueue

    return SqliteQueue(store)
