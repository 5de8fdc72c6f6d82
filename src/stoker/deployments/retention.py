"""Deletes the output of ended runs after some days, with a daily job that defers itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from stoker.store import logs
from stoker.store.open import Store
from stoker.store.purge import in_batches
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job. Only one such job exists.
PURGE = "logs.purge"
_EVERY = timedelta(days=1)


class Retention:
    """Deletes output that is older than ``days``."""

    def __init__(self, store: Store, work: Work, days: int) -> None:
        self._store = store
        self._work = work
        self._kept = timedelta(days=days)
        work.register(PURGE, self._purge)

    def begin(self) -> None:
        """Purge now and once a day. Processes with one database share one job."""
        self._again(timedelta(0))

    def _purge(self, _: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            before = tx.now - self._kept
        purge(self._store, before)
        self._again(_EVERY)

    def _again(self, later: timedelta) -> None:
        def do(tx: Tx) -> None:
            self._work.defer_once(tx, PURGE, PURGE, {}, at=tx.now + later)

        self._store.write(do)


def purge(store: Store, before: datetime) -> int:
    """Delete output of runs that ended before ``before``. Return the number of deleted chunks."""
    return in_batches(store, lambda tx, most: logs.purge(tx, before, most))
