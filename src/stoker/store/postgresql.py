"""Read and write transactions on PostgreSQL."""

from __future__ import annotations

import math
import random
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar, cast

import psycopg
import sqlalchemy as sa
import structlog
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry, PoolProxiedConnection

from stoker.backoff import backoff
from stoker.late_bound import LateBound
from stoker.metrics import Metrics
from stoker.model.errors import Invalid, Unavailable
from stoker.store import pool
from stoker.store.clock import DATABASE_TIME, Clock
from stoker.store.connection_watchdog import ConnectionWatchdog, limit_session, tcp_limits
from stoker.store.notifier import Notifier
from stoker.store.notifier_engines import NotifierEngine
from stoker.store.pipeline import Pipeline
from stoker.store.statement_drivers import PIPELINE, is_ended
from stoker.store.tx import Tx, TxCallbacks, reading
from stoker.store.unconfirmed_commits import UnconfirmedCommits

T = TypeVar("T")
_log = structlog.get_logger("stoker.store")

#: Deadlock and serialization failure: PostgreSQL's documentation recommends to repeat the transaction.
_AGAIN = ("40001", "40P01")
_TRIES = 8
#: A connection that was idle for so long is checked by a query. A query each time costs a tenth of a transaction.
_IDLE_SECONDS = 0.5
#: The key for the time at which a connection was returned to the pool.
_RETURNED = "returned"

#: The number of connections that ordinary users may open, the limit of this user (-1: none), and those in use.
_CAPACITY = sa.text(
    "SELECT CAST(current_setting('max_connections') AS int)"
    " - CAST(current_setting('superuser_reserved_connections') AS int)"
    " - CAST(coalesce(current_setting('reserved_connections', true), '0') AS int),"
    " (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user),"
    " (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid())"
)
_PROCESS_AND_TIME = f"SELECT pg_backend_pid(), {DATABASE_TIME}".encode()
_NOT_DURABLE = sa.text("SET LOCAL synchronous_commit = off")
#: Connections of a process in addition to those of its transactions: listener and sender of notifications, and health
#: check.
FIXED_CONNECTIONS = 3


def open_engine(url: str, pool_size: int, watchdog: ConnectionWatchdog, clock: Clock) -> sa.Engine:
    """Return an engine with at most ``pool_size`` connections, each of which corrects ``clock`` when it opens."""
    parsed = driver_url(url)
    engine = sa.create_engine(
        parsed,
        connect_args=tcp_limits(parsed),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool.TIMEOUT,
        hide_parameters=True,  # parameters include password hashes and scripts of users, which errors must not repeat
    )
    sa.event.listen(engine, "connect", partial(_prepare_connection, watchdog, clock))
    sa.event.listen(engine, "handle_error", _translate_loss)
    sa.event.listen(engine, "checkin", _record_return)
    sa.event.listen(engine, "checkout", partial(_check_connection, engine.dialect))
    return engine


def _prepare_connection(
    watchdog: ConnectionWatchdog, clock: Clock, connection: DBAPIConnection, record: ConnectionPoolEntry
) -> None:
    driver = cast("psycopg.Connection[Any]", connection)
    watchdog.watch(driver)
    has_session = not is_pooled(driver, clock)
    if has_session:
        limit_session(driver)
    record.info[PIPELINE] = Pipeline(driver, prepares=has_session)


def _translate_loss(context: sa.ExceptionContext) -> sa.exc.OperationalError | None:
    """Return the error to raise for a session that PostgreSQL has ended, as for every loss of a connection."""
    error = context.original_exception
    if not is_ended(error):
        return None
    context.is_disconnect = True
    lost = psycopg.OperationalError(str(error))
    return sa.exc.OperationalError(context.statement, None, lost, hide_parameters=True, connection_invalidated=True)


def is_pooled(connection: psycopg.Connection[Any], clock: Clock) -> bool:
    """
    Return whether a connection pooler is between: it gives out process ids of its own.

    The same query corrects ``clock``.
    """
    asked_at = clock.uptime()
    answer = connection.pgconn.exec_(_PROCESS_AND_TIME)
    process, seconds = answer.get_value(0, 0), answer.get_value(0, 1)
    if process is None or seconds is None:
        return False  # the connection is lost, which the next statement reports
    clock.measure(asked_at, float(seconds))
    return int(process) != connection.info.backend_pid


def _record_return(_connection: object, record: ConnectionPoolEntry) -> None:
    record.info[_RETURNED] = time.monotonic()


def _check_connection(
    dialect: sa.Dialect, connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: PoolProxiedConnection
) -> None:
    """
    Replace a connection that does not respond, for example after a restart of PostgreSQL.

    PostgreSQL says goodbye before it closes a connection, so a connection with nothing to read is alive, unless the
    network was cut meanwhile.
    """
    driver = cast("psycopg.Connection[Any]", connection)
    if time.monotonic() - record.info.get(_RETURNED, math.inf) < _IDLE_SECONDS and not _is_readable(driver.fileno()):
        return
    try:
        dialect.do_ping(connection)
    except psycopg.Error as error:
        raise sa.exc.InvalidatePoolError(str(error)) from error


@contextmanager
def session_engine(url: str) -> Iterator[sa.Engine]:
    """Yield an engine whose connections are sessions of their own, and whose statements may take any time."""
    parsed = driver_url(url)
    engine = sa.create_engine(parsed, connect_args=tcp_limits(parsed), poolclass=sa.NullPool, hide_parameters=True)
    try:
        yield engine
    finally:
        engine.dispose()


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
    with session_engine(url) as engine, engine.connect() as connection:
        return is_pooled(cast("psycopg.Connection[Any]", connection.connection.driver_connection), Clock())


def driver_url(url: str) -> sa.URL:
    """Return the URL for SQLAlchemy with the driver psycopg 3, also for a plain ``postgresql://`` URL."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def conninfo(url: str) -> str:
    """Return the URL for psycopg itself."""
    return driver_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def check_capacity(engine: sa.Engine, needed: int) -> None:
    """
    Check whether the server permits ``needed`` connections.

    Raises Invalid if the server never permits as many. If other programs have too many of them now, writes a warning.
    """
    with engine.connect() as connection:
        most, role_limit, used = connection.execute(_CAPACITY).one()
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


@contextmanager
def read_transaction(engine: sa.Engine, clock: Clock) -> Iterator[Tx]:
    """Yield a read transaction with one snapshot (REPEATABLE READ). Raises Unavailable."""
    try:
        with (
            engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
            reading(connection, clock.now()) as tx,
        ):
            yield tx
    except sa.exc.OperationalError as error:
        raise Unavailable(f"cannot read from the database: {error.orig}") from error
    except sa.exc.TimeoutError as error:
        raise pool.pool_exhausted() from error


class _ConnectionLost(Exception):
    """The connection broke before the commit, so nothing of the transaction is stored."""

    def __init__(self, error: sa.exc.OperationalError) -> None:
        super().__init__(str(error))
        self.error = error


class Writer:
    """Runs write transactions, each on its own connection."""

    def __init__(
        self,
        engine: sa.Engine,
        notifier: Notifier,
        sender: NotifierEngine,
        callbacks: LateBound[TxCallbacks],
        metrics: Metrics,
        clock: Clock,
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._notifier = notifier
        self._sender = sender
        self._callbacks = callbacks
        self._metrics = metrics
        self._unconfirmed = UnconfirmedCommits(engine, self._notify_unconfirmed)

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> T:
        """
        Run ``do`` in a transaction; repeat it after a deadlock, and once after a loss of the connection.

        ``background`` has no effect. Raises Unavailable.
        """
        for attempt in range(_TRIES):
            try:
                return self._once(do, durable)
            except sa.exc.TimeoutError as error:
                raise pool.pool_exhausted() from error
            except _ConnectionLost as lost:
                if attempt:
                    raise Unavailable(f"cannot write to the database: {lost.error.orig}") from lost.error
            except sa.exc.OperationalError as error:
                if getattr(error.orig, "sqlstate", None) not in _AGAIN or attempt == _TRIES - 1:
                    raise Unavailable(f"cannot write to the database: {error.orig}") from error
                time.sleep(random.uniform(0, backoff(attempt, first=0.01)))  # noqa: S311 — only spreads the tries
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Send what waits of unconfirmed commits."""
        self._unconfirmed.close()

    def _once(self, do: Callable[[Tx], T], durable: bool) -> T:
        with self._engine.connect() as connection, connection.begin() as transaction:
            tx = Tx(connection, self._clock.now(), callbacks=self._callbacks)
            try:
                if not durable:
                    tx.put(_NOT_DURABLE, {})
                result = do(tx)
                tx.flush()
            except sa.exc.OperationalError as error:
                if connection.invalidated:
                    raise _ConnectionLost(error) from error
                raise
            begun = time.monotonic()
            try:
                tx.commit()
                transaction.commit()  # updates SQLAlchemy's state
            except sa.exc.OperationalError:
                if connection.invalidated:
                    self._unconfirmed.add(tx.notifications)
                raise
        self._metrics.commit_seconds.observe(time.monotonic() - begun)
        self._metrics.commit_transactions.observe(1)
        self._sender.send(tx.notifications)
        tx.notify_committed(self._notifier)
        return result

    def _notify_unconfirmed(self, notifications: Mapping[str, int]) -> None:
        self._sender.send(notifications)
        for topic, number in notifications.items():
            self._notifier.notify(topic, number)
