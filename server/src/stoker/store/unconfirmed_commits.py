"""
Commits whose confirmation was lost with the connection.

PostgreSQL may have stored such a transaction, or may store it later, although its caller gets an error. Its
notifications must be sent once the outcome is certain: otherwise an agent whose document the transaction changed would
wait for the next change.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import LiteralString

import psycopg
import structlog

from stoker.background_thread import BackgroundThread
from stoker.model.errors import Unavailable
from stoker.store.faults import DatabaseError
from stoker.store.notifications import merge

#: Executes a query outside a transaction.
Query = Callable[[LiteralString], int]
_log = structlog.get_logger("stoker.store")

#: A new transaction id: those of all transactions that have written before are smaller.
_BARRIER = "SELECT txid_current()"
#: The smallest id of the transactions that have not ended.
_OLDEST = "SELECT txid_snapshot_xmin(txid_current_snapshot())"
#: Seconds between two looks at the running transactions.
_TICK = 0.1
#: Seconds after which the transaction counts as ended. Other databases of the server may have longer transactions.
_PATIENCE = 60.0
#: Seconds that the thread may take at the end.
_CLOSE = 5.0


class UnconfirmedCommits:
    """
    Sends the notifications of transactions whose outcome is unknown: at once, and when these have certainly ended.

    One thread, which starts with the first such transaction and ends with the last one.
    """

    def __init__(self, query: Query, notify: Callable[[Mapping[str, int]], None]) -> None:
        """``query`` returns the number that a query returns; ``notify`` notifies the subscribers of all processes."""
        self._query = query
        self._notify = notify
        self._lock = threading.Lock()
        self._pending: dict[str, int] = {}
        self._stopping = threading.Event()
        self._thread: BackgroundThread | None = None

    def add(self, notifications: Mapping[str, int]) -> None:
        """Add the notifications of one transaction. Does not block."""
        if not notifications:
            return
        with self._lock:
            merge(self._pending, notifications)
            if self._thread is None:
                self._thread = BackgroundThread("stoker-unconfirmed-commits", self._run)
                self._thread.start()

    def close(self) -> None:
        """Stop the thread, and wait for it, for a few seconds at most."""
        self._stopping.set()
        thread = self._thread
        if thread is not None:
            thread.join(_CLOSE)

    def _run(self) -> None:
        while batch := self._take():
            _log.warning("database.commits_unconfirmed", notifications=len(batch))
            try:
                self._notify(batch)
                self._await_end()
                self._notify(batch)
            except Exception:
                with self._lock:
                    merge(self._pending, batch)
                raise

    def _take(self) -> Mapping[str, int]:
        with self._lock:
            batch, self._pending = self._pending, {}
            if not batch:
                self._thread = None
            return batch

    def _await_end(self) -> None:
        """Wait until all transactions that now run have ended."""
        barrier, until = None, time.monotonic() + _PATIENCE
        while not self._stopping.is_set() and time.monotonic() < until:
            try:
                barrier = barrier or self._query(_BARRIER)
                if self._query(_OLDEST) > barrier:
                    return
            except (DatabaseError, psycopg.Error, Unavailable):
                until = time.monotonic() + _PATIENCE  # PostgreSQL is away, and so are its data
            self._stopping.wait(_TICK)
