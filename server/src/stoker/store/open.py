"""
The store: opens a database by its URL and provides read and write transactions. Reading never waits for a writer.

A health check has a connection of its own, so that an exhausted pool does not look like a lost database.
"""

from __future__ import annotations

import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

from stoker.metrics import Metrics
from stoker.model.errors import Invalid, Unavailable
from stoker.store import postgresql, sqlite
from stoker.store.clock import DATABASE_TIME, Clock
from stoker.store.connection import UNUSABLE_VALUES, DatabaseError, Pool, describe_error, is_fault, unusable_value
from stoker.store.encryption import Encryption, KeySource, without_keys
from stoker.store.notifications import PostgresqlNotifications
from stoker.store.notifier import Notifier
from stoker.store.pipeline import connect
from stoker.store.sql import sql
from stoker.store.sqlite import SqliteConnection, find_path
from stoker.store.tx import Tx, TxCallbacks, TxContext

T = TypeVar("T")

#: The default number of connections of one process to PostgreSQL.
CONNECTIONS = 10
_PROBE = sql("SELECT 1 FROM schema_version", postgresql=f"SELECT {DATABASE_TIME} FROM schema_version")


class Store:
    """
    A database with its transactions, its notifier and its encryption::

        with store.read() as tx:
            config = configs.get(tx, id, project_id)
        store.write(lambda tx: configs.delete(tx, id))

    ``read()`` returns a context manager with one snapshot. ``write(do)`` runs ``do(tx)`` in one transaction and returns
    its result after the commit is on disk. ``do`` may run again, after a deadlock for example, so it must have no
    effect outside the database. An exception from ``do`` rolls the transaction back.
    """

    def __init__(
        self,
        url: str,
        connections: int = CONNECTIONS,
        *,
        keys: KeySource = without_keys,
        direct_url: str = "",
    ) -> None:
        """
        Open the database at ``url``: ``sqlite:///…`` or ``postgresql://…``.

        ``connections`` is the total number of connections of this process, including those of jobs (PostgreSQL only).
        ``keys`` returns the keys for columns with secrets. ``direct_url`` leads to the same PostgreSQL without a
        connection pooler, for work that needs a session of its own. Raises Invalid for the URL of any other database.
        """
        self.url = url
        self.direct_url = direct_url or url
        self.encryption = Encryption(keys)
        self.notifier = Notifier()
        self.metrics = Metrics()
        #: The time that all processes of the site share.
        self.clock = Clock()
        #: What transactions call at their end.
        self.callbacks = TxCallbacks()
        self._context = TxContext(self.clock, self.encryption, self.notifier, self.metrics, self.callbacks)
        #: Sends notifications to other processes and receives theirs. None on SQLite, which one process uses.
        self.notifications: PostgresqlNotifications | None = None
        #: False if the last write failed: the disk is full, for example.
        self.may_write = True
        #: The name of the database: ``sqlite`` or ``postgresql``.
        self.dialect = re.split(r"[+:]", url, maxsplit=1)[0]
        #: The connections of transactions. SQLite's writer has one of its own.
        self.pool: Pool[Any]
        #: The connection of the health check.
        self._probe: Pool[Any]
        self._writer: sqlite.GroupWriter | postgresql.Writer
        if self.dialect == "sqlite":
            self._open_sqlite()
        elif self.dialect == "postgresql":
            self._open_postgresql(connections - postgresql.FIXED_CONNECTIONS)
        else:
            raise Invalid(f"cannot use a {self.dialect!r} database: give a sqlite:/// or postgresql:// URL")

    def _open_sqlite(self) -> None:
        self.pool, self._probe = sqlite.open_pool(self.url), sqlite.open_pool(self.url)
        self._writer = sqlite.GroupWriter(self.url, self._context)

    def _open_postgresql(self, pooled: int) -> None:
        self.pool, self._probe = (postgresql.open_pool(self.url, size, self.clock) for size in (pooled, 1))
        self.notifications = PostgresqlNotifications(self.direct_url, self.notifier, self.metrics)
        self._writer = postgresql.Writer(self.pool, self.notifications, self._context)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Open a read transaction. Raises Unavailable if the database does not respond, Invalid as ``write`` does."""
        try:
            with self.pool.connection() as connection:
                connection.begin_reading()
                tx = Tx(connection, self._context, reading=True)
                try:
                    yield tx
                finally:
                    # Known objects refer to the transaction: otherwise they would wait for the garbage collector.
                    tx.cache.clear()
                    tx.notes.clear()
        except UNUSABLE_VALUES as error:
            raise unusable_value(error) from error
        except (DatabaseError, sqlite3.Error) as error:
            if is_fault(error):
                raise Unavailable(f"cannot read from the database: {getattr(error, 'orig', error)}") from error
            raise

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> T:
        """
        Run ``do`` in a write transaction and return its result after the commit.

        ``background`` marks a part of a long operation: on SQLite, which has one writer, other transactions go first.
        Without ``durable``, the commit does not wait for the disk: it survives the end of this process, but a crash of
        the machine or of PostgreSQL may undo it.
        Raises Unavailable if the database does not respond, Invalid for a value that it cannot store, and any exception
        of ``do``, with secrets redacted.
        """
        begun = time.monotonic()
        try:
            result, tx = self._writer.write(do, background=background, durable=durable)
        except UNUSABLE_VALUES as error:
            raise unusable_value(error) from error
        except Unavailable:
            self.may_write = False
            raise
        self.may_write = True
        seconds = time.monotonic() - begun
        self.metrics.write_seconds.observe(seconds)
        if tx.is_signal:
            self.metrics.signal_seconds.observe(seconds)
        return result

    def start_listener(self) -> None:
        """
        Notify this process's subscribers of changes that other processes commit.

        Waits, for a few seconds at most, until other processes know of this one, and this one of them. On SQLite
        there is only one process, so the method does nothing.
        """
        if self.notifications is not None:
            self.notifications.start()

    def check_notifications(self) -> None:
        """Raise Unavailable if notifications are currently not sent or not received."""
        problems = [f"the {part} {problem}" for part, problem in self.notifier_problems().items() if problem]
        if problems:
            raise Unavailable("; ".join(problems))

    def notifier_problems(self) -> dict[str, str | None]:
        """Return the current problem of each part of the notifier; None: the part works."""
        return {} if self.notifications is None else self.notifications.problems()

    def check(self) -> None:
        """
        Read one row, and correct the clock. Raises Unavailable; blocks as long as the database does not respond.
        """
        try:
            with self._probe.connection() as connection:
                asked_at = self.clock.uptime()
                row = connection.execute([(_PROBE, [{}])]).fetchone()
        except (DatabaseError, sqlite3.Error) as error:
            raise Unavailable(f"cannot read from the database: {describe_error(error)}") from error
        if self.dialect == "sqlite":
            self.clock.approach_machine()
        elif row is not None:
            self.clock.measure(asked_at, row[0])

    def count_connections(self) -> tuple[int, int]:
        """Return how many connections transactions use now, and how many this process may open for them."""
        return self.pool.used, self.pool.size

    @contextmanager
    def session(self) -> Iterator[Any]:
        """
        Yield the driver's connection for work that needs a session of its own, such as a migration.

        Its statements may take any time. It begins transactions only if told to. Raises the driver's errors.
        """
        url = self.direct_url
        is_file = self.dialect == "sqlite"
        driver = SqliteConnection(find_path(url)).driver if is_file else connect(url)
        with closing(driver) as connection:
            yield connection

    def close(self) -> None:
        """Stop the threads and close all connections."""
        self._writer.close()
        self._probe.close()
        self.pool.close()
