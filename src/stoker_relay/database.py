"""The relay's database: SQLite, with one writer thread that commits all waiting writes as one group."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from stoker_relay.settings import Unusable

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    agent TEXT NOT NULL,
    kind TEXT NOT NULL,
    request BLOB NOT NULL,
    -- Running time of the relay when the request was stored, in seconds: the computer's clock may jump.
    stored_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS ix_entries_agent ON entries (agent, seq);
CREATE TABLE IF NOT EXISTS known_keys (digest TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS properties (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""

Write = Callable[[sqlite3.Connection], Any]


class Database:
    """
    Opens the file ``path``, which only its owner can read. Use it on one event loop.

    A write is durable when ``write`` returns: ``synchronous`` is FULL. Raises Unusable if the file is no database, or
    another relay uses it.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600)
        self._thread = ThreadPoolExecutor(1, "relay-database")
        self._waiting: list[tuple[Write, asyncio.Future[Any]]] = []
        self._is_writing = False
        try:
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1)
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = FULL")
            self._connection.executescript(_SCHEMA)
        except sqlite3.OperationalError as problem:
            raise Unusable(f"cannot open {path}: {problem}; does another relay use this state directory?") from None
        except sqlite3.DatabaseError as problem:
            raise Unusable(f"cannot open {path}: {problem}; remove the file, and what it has is lost") from None

    def read(self, query: str, *values: Any) -> list[Any]:
        """Return the rows of a query. For the start only: the call blocks."""
        return self._connection.execute(query, values).fetchall()

    async def write(self, do: Write) -> Any:
        """Run ``do`` in a transaction, return its result after the commit. Raises what ``do`` or the commit raises."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.append((do, future))
        if not self._is_writing:
            self._is_writing = True
            self._start()
        return await future

    def close(self) -> None:
        """Close the file after the writes in progress."""
        self._thread.shutdown()
        self._connection.close()

    def _start(self) -> None:
        group, self._waiting = self._waiting, []
        loop = asyncio.get_running_loop()
        job = loop.run_in_executor(self._thread, self._commit, [do for do, _ in group])
        job.add_done_callback(lambda done: self._finish([future for _, future in group], done))

    def _commit(self, group: list[Write]) -> list[Any]:
        """Commit a group. A write that fails fails its whole group, because only the disk can make it fail."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            results = [do(self._connection) for do in group]
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return results

    def _finish(self, futures: list[asyncio.Future[Any]], done: asyncio.Future[list[Any]]) -> None:
        problem = done.exception()
        for number, future in enumerate(futures):
            if future.done():
                continue  # the agent has closed its connection
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(done.result()[number])
        if self._waiting:
            self._start()
        else:
            self._is_writing = False
