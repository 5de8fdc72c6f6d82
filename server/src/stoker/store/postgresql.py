"""Connections to PostgreSQL, directly or through a pooler, and write transactions, each on a connection of its own."""

from __future__ import annotations

import contextlib
import random
import select
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, TypeVar

import psycopg
import structlog

from stoker.failures import backoff
from stoker.model.errors import Invalid, Unavailable
from stoker.store.clock import DATABASE_TIME, Clock
from stoker.store.connection import Batch, ConnectionLost, Failure, Pool, Rows, is_ended, wrap_error
from stoker.store.notifications import PostgresqlNotifications
from stoker.store.pipeline import DEFAULT, REPEATABLE_READ, Pipeline, Query, connect, limit_session
from stoker.store.sql import sql
from stoker.store.tx import Tx, TxContext, run

_log = structlog.get_logger("stoker.store")

#: A connection that was idle for so long is checked by a query. A query each time costs a tenth of a transaction.
_IDLE_SECONDS = 0.5

#: The number of connections that ordinary users may open, the limit of this user (-1: none), and those in use.
_CAPACITY = (
    "SELECT CAST(current_setting('max_connections') AS int)"
    " - CAST(current_setting('superuser_reserved_connections') AS int)"
    " - CAST(coalesce(current_setting('reserved_connections', true), '0') AS int),"
    " (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())"
)
_PROCESS_AND_TIME = f"SELECT pg_backend_pid(), {DATABASE_TIME}".encode()
#: Connections of a process in addition to those of its transactions: listener and sender of notifications, and health
#: check.
FIXED_CONNECTIONS = 3


class PostgresqlConnection:
    """A connection to PostgreSQL. Implements ``connection.Connection`` and ``connection.Pooled``."""

    dialect = "postgresql"

    def __init__(self, url: str, clock: Clock) -> None:
        """Open the connection, and correct ``clock``. Raises Failure."""
        try:
            self.driver = connect(url)
            #: The batches of this connection.
            self.pipeline = Pipeline(self.driver)
            self.pipeline.prepares = not is_pooled(self.pipeline, clock)
            if self.pipeline.prepares:
                limit_session(self.pipeline)
        except psycopg.Error as error:
            raise wrap_error(error) from error

    def begin_reading(self) -> None:
        """Let the next transaction have one snapshot; see ``connection.Pooled``."""
        self.pipeline.isolation = REPEATABLE_READ

    def execute(self, batch: Batch) -> Rows:
        """Execute a batch in one round trip; see ``connection.Connection``."""
        return _LoadedRows(self._run(batch), self.pipeline.rowcount)

    def commit(self, batch: Batch) -> None:
        """Execute a batch, empty it, and commit, in one round trip."""
        self._run(batch, commits=True)

    def _run(self, batch: Batch, *, commits: bool = False) -> Sequence[Any]:
        queries: list[Query] = []
        for statement, rows in batch:
            text, names = statement.postgresql
            queries += [(text, [row[name] for name in names]) for row in rows]
        batch.clear()
        try:
            return self.pipeline.run(queries, commits=commits)
        except psycopg.Error as error:
            if is_ended(error):
                self.driver.close()
            if self.driver.closed:
                raise ConnectionLost(error) from error
            raise wrap_error(error) from error

    def reset(self) -> bool:
        """Roll back; see ``connection.Pooled``."""
        self.pipeline.isolation = DEFAULT
        with contextlib.suppress(psycopg.Error):
            self.pipeline.rollback()
        return not self.driver.closed

    def is_alive(self, idle_seconds: float) -> bool:
        """
        Return whether PostgreSQL responds. It may have been started again.

        PostgreSQL says goodbye before it closes a connection, so a connection with nothing to read is alive, unless the
        network was cut meanwhile.
        """
        if idle_seconds < _IDLE_SECONDS and not _is_readable(self.driver.fileno()):
            return True
        with contextlib.suppress(psycopg.Error):
            self.pipeline.run([(b"SELECT 1", ())], commits=True)
            return True
        return False

    def close(self) -> None:
        """Close the connection."""
        self.driver.close()


class _LoadedRows:
    __slots__ = ("_rows", "rowcount")

    def __init__(self, rows: Sequence[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> Sequence[Any]:
        return self._rows


def open_pool(url: str, size: int, clock: Clock) -> Pool[PostgresqlConnection]:
    """Return a pool of at most ``size`` connections, each of which corrects ``clock`` when it opens."""
    return Pool(lambda: PostgresqlConnection(url, clock), size, size)


def is_pooled(pipeline: Pipeline, clock: Clock) -> bool:
    """
    Return whether a connection pooler is between: it gives out process ids of its own. Raises psycopg.Error.

    The same query corrects ``clock``.
    """
    asked_at = clock.uptime()
    ((process, seconds),) = pipeline.run([(_PROCESS_AND_TIME, ())], commits=True)
    clock.measure(asked_at, seconds)
    return bool(process != pipeline.connection.info.backend_pid)


def check_pooler(url: str, direct_url: str) -> bool:
    """
    Return whether ``url`` leads through a connection pooler such as pgbouncer.

    ``direct_url`` leads to PostgreSQL itself; empty: it is not set. Equal URLs state that the pooler keeps a session
    for each of its clients. Raises Invalid if sessions of Stoker's own are impossible.
    """
    if not _leads_to_pooler(url):
        return False
    if not direct_url:
        raise Invalid(
            "the database URL leads to a connection pooler such as pgbouncer, and Stoker also needs sessions of its"
            " own: name PostgreSQL itself in database_direct_url"
        )
    if direct_url != url and _leads_to_pooler(direct_url):
        raise Invalid("database_direct_url leads to a connection pooler, too: name PostgreSQL itself there")
    return True


def _leads_to_pooler(url: str) -> bool:
    with closing(connect(url)) as connection:
        return is_pooled(Pipeline(connection), Clock())


def check_capacity(connection: psycopg.Connection[Any], needed: int) -> None:
    """
    Check whether the server permits ``needed`` connections.

    Raises Invalid if the server never permits as many. If other programs have too many of them now, writes a warning.
    """
    row = connection.execute(_CAPACITY).fetchone()
    assert row is not None, "the query returns one row"
    most, role_limit, used = row
    if 0 <= role_limit < most:
        most = role_limit
    if needed > most:
        raise Invalid(
            f"the settings require {needed} connections (workers times database_connections), but the PostgreSQL server"
            f" permits {most} to this user: decrease the settings, or increase the server's max_connections"
        )
    if needed > most - used:
        _log.warning("database.connections_short", required=needed, permitted=most, used_by_others=used)


def _is_readable(file: int) -> bool:
    poll = select.poll()
    poll.register(file, select.POLLIN)
    return bool(poll.poll(0))


T = TypeVar("T")

#: Deadlock and serialization failure: PostgreSQL's documentation recommends to repeat the transaction.
_AGAIN = ("40001", "40P01")
_TRIES = 8
_NOT_DURABLE = sql("SET LOCAL synchronous_commit = off")


class _NothingStored(Exception):
    """The connection broke before the commit, so nothing of the transaction is stored."""

    def __init__(self, error: ConnectionLost) -> None:
        super().__init__(str(error))
        self.error = error


class Writer:
    """Runs write transactions, each on its own connection."""

    def __init__(
        self,
        pool: Pool[PostgresqlConnection],
        notifications: PostgresqlNotifications,
        context: TxContext,
    ) -> None:
        self._pool = pool
        self._notifications = notifications
        self._context = context

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> tuple[T, Tx]:
        """
        Run ``do`` in a transaction, and return its result and the transaction after the commit.

        It is repeated after a deadlock, and once after a loss of the connection.

        ``background`` has no effect. Raises Unavailable.
        """
        for attempt in range(_TRIES):
            try:
                return self._once(do, durable)
            except _NothingStored as lost:
                if attempt:
                    raise Unavailable(f"cannot write to the database: {lost.error.orig}") from lost.error
            except Failure as error:
                if getattr(error.orig, "sqlstate", None) not in _AGAIN or attempt == _TRIES - 1:
                    raise Unavailable(f"cannot write to the database: {error.orig}") from error
                time.sleep(random.uniform(0, backoff(attempt, first=0.01)))  # noqa: S311 — only spreads the tries
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Send the notifications that wait."""
        self._notifications.close()

    def _once(self, do: Callable[[Tx], T], durable: bool) -> tuple[T, Tx]:
        with self._pool.connection() as connection:
            tx = Tx(connection, self._context)
            try:
                if not durable:
                    tx.put(_NOT_DURABLE, {})
                result = run(tx, do)
            except ConnectionLost as error:
                raise _NothingStored(error) from error
            begun = time.monotonic()
            try:
                connection.commit(tx.unsent)
            except ConnectionLost:
                self._notifications.sender.send_unconfirmed(tx.notifications)
                raise
        self._context.metrics.commit_seconds.observe(time.monotonic() - begun)
        self._context.metrics.commit_transactions.observe(1)
        self._notifications.sender.send(tx.notifications)
        tx.notify_committed()
        return result, tx
