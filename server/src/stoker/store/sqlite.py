"""
Read and write transactions on SQLite: any number of readers, and one writer that commits in groups.

A group consists of all transactions that wait when the writer becomes free. Each has its own savepoint; one commit (one
fsync) serves all of them, and no caller returns before it. With 32 waiting writers, the throughput is six times that of
separate commits.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from stoker.model.errors import Invalid, Unavailable
from stoker.store.connection import Batch, Pool, Rows, is_fault, wrap_error
from stoker.store.sql import sql
from stoker.store.tx import Tx, TxContext, run

T = TypeVar("T")

#: Seconds. A group that has lasted this long is committed, so that its finished transactions do not wait for the rest.
_GROUP_SECONDS = 0.05
#: SQLite's page cache of each connection. Long listings fill the caches of the pool's readers, and these keep their
#: memory; missing pages come from the operating system's cache.
_READER_CACHE_KIB, _WRITER_CACHE_KIB = 4_000, 16_000
_BEGIN = sql("BEGIN")
#: Transactions that read at a time, and connections that stay open for them.
_READERS, _KEPT_READERS = 64, 8


class SqliteConnection:
    """A connection to a database file. Implements ``connection.Connection`` and ``connection.Pooled``."""

    dialect = "sqlite"

    def __init__(self, path: str) -> None:
        """Raises Unavailable."""
        #: The driver's connection. Stoker executes BEGIN itself where needed.
        self.driver = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        _prepare(self.driver)

    def execute(self, batch: Batch) -> Rows:
        """Execute a batch; see ``connection.Connection``."""
        cursor: sqlite3.Cursor | None = None
        statements = list(batch)
        batch.clear()
        for statement, rows in statements:
            text, names = statement.sqlite
            try:
                if len(rows) == 1:
                    cursor = self.driver.execute(text, [*map(rows[0].__getitem__, names)])
                else:
                    cursor = self.driver.executemany(text, ([*map(row.__getitem__, names)] for row in rows))
            except sqlite3.Error as error:
                raise wrap_error(error, text) from error
        assert cursor is not None, "the batch is empty"
        return cursor

    def begin_reading(self) -> None:
        """Begin a transaction with one snapshot; see ``connection.Pooled``."""
        self.execute([(_BEGIN, [{}])])

    def reset(self) -> bool:
        """Roll back; see ``connection.Pooled``."""
        try:
            if self.driver.in_transaction:
                self.driver.execute("ROLLBACK")
        except sqlite3.Error:
            return False
        return True

    def is_alive(self, _idle_seconds: float) -> bool:
        """Return True: nothing closes the connection."""
        return True

    def close(self) -> None:
        """Close the connection."""
        self.driver.close()


def find_path(url: str) -> str:
    """
    Return the path of the file in a database URL.

    Raises Invalid for a database in memory, because each connection would have a separate one.
    """
    path = url.removeprefix("sqlite:///") if url.startswith("sqlite:///") else ""
    if path in ("", ":memory:"):
        raise Invalid("cannot use a database in memory: give sqlite:/// with the path of a file")
    return path


def open_pool(url: str) -> Pool[SqliteConnection]:
    """Return the pool of connections for readers. Raises Invalid."""
    return Pool(partial(SqliteConnection, find_path(url)), _READERS, _KEPT_READERS)


def _prepare(connection: sqlite3.Connection) -> None:
    if not connection.execute("PRAGMA page_count").fetchone()[0]:
        # Only before the first page is written: on an existing file, the statement would wait for the writer's lock.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")  # with NORMAL, a power failure may lose acknowledged signals
    connection.execute("PRAGMA busy_timeout = 30000")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")


class _Work:
    """One transaction of a group: its function, then its result or error."""

    def __init__(self, do: Callable[[Tx], Any], durable: bool) -> None:
        self.do = do
        self.durable = durable
        self.tx: Tx | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.done = False
        #: Filled when the work is done, or when its thread has to lead the next group.
        self.wake: SimpleQueue[None] = SimpleQueue()


class GroupWriter:
    """Runs write transactions in groups, on one connection."""

    def __init__(
        self,
        url: str,
        context: TxContext,
    ) -> None:
        self._context = context
        self._connection = SqliteConnection(find_path(url))
        self._raw = self._connection.driver
        self._raw.execute(f"PRAGMA cache_size = -{_WRITER_CACHE_KIB}")
        self._turn = threading.Lock()
        self._waiting: deque[_Work] = deque()
        #: Parts of long operations. They alternate with the groups of other transactions, one at a time.
        self._background: deque[_Work] = deque()
        self._background_is_next = False
        #: The number of transactions in the current group, which all wait for its commit.
        self._size = 0
        self._leader: int | None = None
        #: Whether commits currently wait for the disk.
        self._is_synced = True

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> tuple[T, Tx]:
        """
        Run ``do`` in a transaction, and return its result and the transaction after the commit.

        The caller whose thread gets the turn commits for all that wait. ``background`` marks a part of a long
        operation. Raises RuntimeError inside another write of the same thread.
        """
        if self._leader == threading.get_ident():
            raise RuntimeError("a write inside a write: pass the transaction on instead")
        work = _Work(do, durable)
        (self._background if background else self._waiting).append(work)
        while not work.done:
            if self._turn.acquire(blocking=False):  # this thread commits for all that wait
                try:
                    while not work.done:
                        self._lead()
                finally:
                    self._turn.release()
                    self._wake_next()
            elif not work.done:
                work.wake.get()
        if work.error is not None:
            raise work.error
        assert work.tx is not None, "a transaction without an error was run"
        # In each caller's own thread, outside its turn: callbacks may write or fail without affecting other callers.
        work.tx.notify_committed()
        return work.result, work.tx

    def close(self) -> None:
        """Close the connection after the current group."""
        with self._turn:
            self._connection.close()

    def _lead(self) -> None:
        group = self._next_group()
        self._leader = threading.get_ident()
        try:
            self._commit(group)
        except BaseException as error:
            self._abandon(group, error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._leader = None
            for work in group:
                work.done = True
                work.wake.put(None)

    def _wake_next(self) -> None:
        """Wake a thread to lead the next group, if transactions were added while the turn was taken."""
        for queue in (self._waiting, self._background):
            if queue:
                with contextlib.suppress(IndexError):  # another thread has just taken it
                    queue[0].wake.put(None)
                    return

    def _next_group(self) -> list[_Work]:
        if self._background and (self._background_is_next or not self._waiting):
            self._background_is_next = False
            group = [self._background.popleft()]
        else:
            self._background_is_next = True
            group = [self._waiting.popleft() for _ in range(len(self._waiting))]
        self._size = len(group)
        return group

    def _commit(self, group: list[_Work]) -> None:
        self._sync(group[0].durable or any(work.durable for work in group))
        self._raw.execute("BEGIN IMMEDIATE")
        if len(group) == 1:  # a savepoint would protect no other transaction
            self._do(group[0], "ROLLBACK")
        else:
            self._do_group(group)
        if self._raw.in_transaction:
            begun = time.monotonic()
            try:
                self._raw.execute("COMMIT")
            except sqlite3.IntegrityError:
                # A deferred constraint failed: it concerns one transaction, but SQLite does not report which.
                if len(group) == 1:
                    raise
                self._roll_back()
                for work in group:
                    self._commit_alone(work)
                return
            else:
                self._context.metrics.commit_seconds.observe(time.monotonic() - begun)
                self._context.metrics.commit_transactions.observe(len(group))

    def _sync(self, durable: bool) -> None:
        if durable != self._is_synced:
            self._raw.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._is_synced = durable

    def _commit_alone(self, work: _Work) -> None:
        work.result = work.error = None
        try:
            self._commit([work])
        except Exception as error:
            self._abandon([work], error)

    def _do_group(self, group: list[_Work]) -> None:
        """Do the works one after the other. Those for which no time is left wait again, outside the group."""
        end = time.monotonic() + _GROUP_SECONDS
        for place, work in enumerate(group):
            if place and time.monotonic() > end:
                self._waiting.extendleft(reversed(group[place:]))
                del group[place:]
                break
            self._raw.execute("SAVEPOINT work")
            self._do(work, "ROLLBACK TO work")
            self._raw.execute("RELEASE work")

    def _do(self, work: _Work, undo: str) -> None:
        try:
            work.tx = Tx(self._connection, self._context, is_contended=self._is_contended)
            work.result = run(work.tx, work.do)
            work.tx.send()
        except BaseException as error:
            work.error = _unavailable(error) if is_fault(error) else error
            if not self._raw.in_transaction:
                # SQLite rolled back the whole transaction (for example, the disk is full): no work of the group remains
                raise
            self._raw.execute(undo)

    def _is_contended(self) -> bool:
        return self._size > 1 or bool(self._waiting)

    def _abandon(self, group: list[_Work], error: BaseException) -> None:
        for work in group:
            work.error = work.error or (error if isinstance(error, sqlite3.IntegrityError) else _unavailable(error))
        self._roll_back()

    def _roll_back(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")


def _unavailable(error: BaseException) -> Unavailable:
    unavailable = Unavailable(f"cannot write to the database: {getattr(error, 'orig', None) or error}")
    unavailable.__cause__ = error
    return unavailable
