"""
What ``sqlite`` and ``postgresql`` have in common: connections, the pool of a process, and errors, which are without the
values of statements.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

import psycopg
import structlog

from stoker.model.errors import Invalid, Unavailable
from stoker.store.sql import Statement

_log = structlog.get_logger("stoker.store")

#: PostgreSQL ended the session, because the transaction was idle, or took too long. psycopg has no OperationalError for
#: these, and the connection may not know yet that it is closed.
_ENDED = ("25P03", "25P04")


class DatabaseError(Exception):
    """
    An error that the database or its driver has reported. The transaction cannot continue.

    The text has the statement, but not the values: these include password hashes and scripts of users.
    """

    def __init__(self, error: Exception, statement: str = "") -> None:
        super().__init__(f"{error}\n[SQL: {statement}]" if statement else str(error))
        #: The driver's error.
        self.orig = error


class Failure(DatabaseError):
    """The database, the disk, the network or the machine failed, or a statement met a limit of the database."""


class ConnectionLost(Failure):
    """The connection broke. It cannot be used any more."""


class UniqueViolation(DatabaseError):
    """A constraint refuses a row, such as a unique index."""


class UnusableValue(DatabaseError):
    """A value that no column can hold: a number out of range, for example."""


#: Raised for a value that no column can hold, or no query compare: a number out of range, a text that is too long
#: (PostgreSQL), or contains NUL (PostgreSQL) or a lone surrogate.
UNUSABLE_VALUES = (UnusableValue, OverflowError, UnicodeEncodeError)

_CLASSES: tuple[tuple[type[DatabaseError], tuple[type[Exception], ...]], ...] = (
    (Failure, (sqlite3.OperationalError, psycopg.OperationalError)),
    (UniqueViolation, (sqlite3.IntegrityError, psycopg.IntegrityError)),
    (UnusableValue, (sqlite3.DataError, psycopg.DataError)),
)


def wrap_error(error: Exception, statement: str = "") -> DatabaseError:
    """Return the error for one of a driver."""
    for kind, causes in _CLASSES:
        if isinstance(error, causes):
            return kind(error, statement)
    return DatabaseError(error, statement)


def describe_error(error: Exception) -> str:
    """Return the first line of the driver's error."""
    cause = error.orig if isinstance(error, DatabaseError) else error
    return next(iter(str(cause).strip().splitlines()), type(cause).__name__)


def is_fault(error: BaseException) -> bool:
    """
    Return whether the database, its disk or its machine failed, not a statement. Errors of SQLite may be unwrapped.
    """
    cause = error.orig if isinstance(error, DatabaseError) else error
    if isinstance(cause, sqlite3.Error):
        code = getattr(cause, "sqlite_errorcode", None)  # extended codes use the upper bits
        is_operational = isinstance(cause, sqlite3.OperationalError)
        return is_operational and code is not None and code & 0xFF != sqlite3.SQLITE_ERROR
    return isinstance(error, Failure)


def is_ended(error: BaseException) -> bool:
    """Return whether PostgreSQL ended the session because of a limit of its transactions."""
    return getattr(error, "sqlstate", None) in _ENDED


def unusable_value(error: BaseException) -> Invalid:
    """Return the error of the API for one of ``UNUSABLE_VALUES``, and log the driver's error with its traceback."""
    _log.warning("database.value_refused", exc_info=error)
    return Invalid("a value is out of range, too long or not valid text, so that the database cannot store it")


#: Seconds that a transaction waits for a free connection.
TIMEOUT = 10.0

#: Statements in the order of their execution, each with the values of its parameters, once for each execution.
Batch = list[tuple[Statement, list[Mapping[str, Any]]]]


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
    """A connection that executes statements."""

    #: The name of the database: ``sqlite`` or ``postgresql``.
    dialect: str

    def execute(self, batch: Batch) -> Rows:
        """Execute a batch in the transaction, and empty it. Return its last statement's rows. Raises DatabaseError."""


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
        #: The number of connections in use.
        self.used = 0
        self._lock = threading.Lock()
        self._is_closed = False

    @contextmanager
    def connection(self) -> Iterator[C]:
        """Yield a connection. Raises Unavailable if none becomes free in time, and what ``connect`` raises."""
        if not self._free.acquire(timeout=TIMEOUT):
            raise Unavailable(
                f"all database connections of this process were busy for {TIMEOUT:g} seconds: try again later"
                " (the setting database_connections allows more, on PostgreSQL)"
            )
        with self._lock:
            self.used += 1
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._return(connection)
        finally:
            with self._lock:
                self.used -= 1
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
