"""Connections to a database, which ``sqlite`` and ``postgresql`` implement, and the pool of a process."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from stoker.model.errors import Unavailable
from stoker.store.sql import Statement

#: Seconds that a transaction waits for a free connection.
TIMEOUT = 10.0

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


class Pooled(Protocol):
    """What a pool needs of a connection."""

    def begin_reading(self) -> None:
        """Begin a transaction that only reads, with one snapshot."""

    def reset(self) -> bool:
        """End the transaction of the last user. Return whether the connection can be used again."""

    def is_alive(self, idle_seconds: float) -> bool:
        """Return whether the connection responds, after it was idle for so long."""

    def close(self) -> None:
        """Close the connection."""


C = TypeVar("C", bound=Pooled)


class Pool(Generic[C]):
    """
    At most ``size`` connections, of which ``kept`` stay open while they are not used; the last used one is next.

    ``connect`` opens a connection, on the thread that needs it.
    """

    def __init__(self, connect: Callable[[], C], size: int, kept: int) -> None:
        self.size = size
        self._connect = connect
        self._kept = kept
        self._free = threading.Semaphore(size)
        #: Connections that are not used, with the time of their return.
        self._idle: deque[tuple[C, float]] = deque()
        self._used = 0
        self._lock = threading.Lock()
        self._is_closed = False

    @property
    def used(self) -> int:
        """The number of connections in use."""
        return self._used

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Yield a connection. Raises Unavailable if none becomes free in time, and what ``connect`` raises."""
        if not self._free.acquire(timeout=TIMEOUT):
            raise Unavailable(
                f"all database connections of this process were busy for {TIMEOUT:g} seconds: try again later"
                " (the setting database_connections allows more, on PostgreSQL)"
            )
        with self._lock:
            self._used += 1
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._return(connection)
        finally:
            with self._lock:
                self._used -= 1
            self._free.release()

    def _take(self) -> C:
        while True:
            try:
                connection, returned = self._idle.pop()
            except IndexError:
                return self._connect()
            if connection.is_alive(time.monotonic() - returned):
                return connection
            connection.close()

    def _return(self, connection: C) -> None:
        if connection.reset() and len(self._idle) < self._kept and not self._is_closed:
            self._idle.append((connection, time.monotonic()))
        else:
            connection.close()

    def close(self) -> None:
        """Close the idle connections now, and the others when they are returned."""
        self._is_closed = True
        while self._idle:
            self._idle.pop()[0].close()
