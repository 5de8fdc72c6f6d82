"""Read and write transactions on PostgreSQL."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import sqlalchemy as sa

from stoker.backoff import backoff
from stoker.late_bound import LateBound
from stoker.model.errors import Unavailable
from stoker.store import pool
from stoker.store.notifications import NotificationSender
from stoker.store.notifier import Notifier
from stoker.store.tx import Tx, TxCallbacks, reading

T = TypeVar("T")

#: Deadlock and serialization failure: PostgreSQL's documentation recommends to repeat the transaction.
_AGAIN = ("40001", "40P01")
_TRIES = 8


#: Connections of a process in addition to those of its transactions: listener and sender of notifications, and health
#: check.
FIXED_CONNECTIONS = 3


def open_engine(url: str, pool_size: int) -> sa.Engine:
    """Return an engine with at most ``pool_size`` connections."""
    return sa.create_engine(
        driver_url(url),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=pool.TIMEOUT,
        pool_pre_ping=True,
        hide_parameters=True,  # parameters include password hashes and scripts of users, which errors must not repeat
    )


def driver_url(url: str) -> sa.URL:
    """Return the URL for SQLAlchemy with the driver psycopg 3, also for a plain ``postgresql://`` URL."""
    return sa.make_url(url).set(drivername="postgresql+psycopg")


def conninfo(url: str) -> str:
    """Return the URL for psycopg itself."""
    return driver_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


@contextmanager
def read_transaction(engine: sa.Engine) -> Iterator[Tx]:
    """Yield a read transaction with one snapshot (REPEATABLE READ). Raises Unavailable."""
    try:
        with (
            engine.connect().execution_options(isolation_level="REPEATABLE READ") as connection,
            reading(connection) as tx,
        ):
            yield tx
    except sa.exc.OperationalError as error:
        raise Unavailable(f"cannot read from the database: {error.orig}") from error
    except sa.exc.TimeoutError as error:
        raise pool.pool_exhausted() from error


class Writer:
    """Runs write transactions, each on its own connection."""

    def __init__(
        self, engine: sa.Engine, notifier: Notifier, sender: NotificationSender, callbacks: LateBound[TxCallbacks]
    ) -> None:
        self._engine = engine
        self._notifier = notifier
        self._sender = sender
        self._callbacks = callbacks

    def write(self, do: Callable[[Tx], T], *, background: bool = False, durable: bool = True) -> T:
        """Run ``do`` in a transaction; repeat it after a deadlock. ``background`` has no effect. Raises Unavailable."""
        for attempt in range(_TRIES):
            try:
                return self._once(do, durable)
            except sa.exc.TimeoutError as error:
                raise pool.pool_exhausted() from error
            except sa.exc.OperationalError as error:
                if getattr(error.orig, "sqlstate", None) not in _AGAIN or attempt == _TRIES - 1:
                    raise Unavailable(f"cannot write to the database: {error.orig}") from error
                time.sleep(random.uniform(0, backoff(attempt, first=0.01)))  # noqa: S311 — only spreads the tries
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Do nothing: the writer owns no threads."""

    def _once(self, do: Callable[[Tx], T], durable: bool) -> T:
        with self._engine.begin() as connection:
            if not durable:
                connection.exec_driver_sql("SET LOCAL synchronous_commit = off")
            tx = Tx(connection, callbacks=self._callbacks)
            result = do(tx)
            tx.flush()
        self._sender.send(tx.notifications)
        tx.notify_committed(self._notifier)
        return result
