"""Write transactions on PostgreSQL."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from stoker.failures import backoff
from stoker.metrics import Metrics
from stoker.model.errors import Unavailable
from stoker.store.clock import Clock
from stoker.store.connection import Pool
from stoker.store.encryption import Encryption
from stoker.store.faults import ConnectionLost, Failure
from stoker.store.notifications import PostgresqlNotifications
from stoker.store.notifier import Notifier
from stoker.store.postgresql_connection import PostgresqlConnection
from stoker.store.sql import sql
from stoker.store.tx import Tx, TxCallbacks, run

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
        notifier: Notifier,
        notifications: PostgresqlNotifications,
        callbacks: TxCallbacks,
        metrics: Metrics,
        clock: Clock,
        encryption: Encryption,
    ) -> None:
        self._pool = pool
        self._encryption = encryption
        self._clock = clock
        self._notifier = notifier
        self._notifications = notifications
        self._callbacks = callbacks
        self._metrics = metrics

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
            tx = Tx(connection, self._clock.now(), self._encryption, callbacks=self._callbacks)
            try:
                if not durable:
                    tx.put(_NOT_DURABLE, {})
                result = run(tx, do)
            except ConnectionLost as error:
                raise _NothingStored(error) from error
            begun = time.monotonic()
            try:
                tx.commit()
            except ConnectionLost:
                self._notifications.sender.send_unconfirmed(tx.notifications)
                raise
        self._metrics.commit_seconds.observe(time.monotonic() - begun)
        self._metrics.commit_transactions.observe(1)
        self._notifications.sender.send(tx.notifications)
        tx.notify_committed(self._notifier)
        return result, tx
