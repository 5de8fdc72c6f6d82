"""What runs wrote goes after some days: a job that has itself done again every day."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from stoker.store import logs
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work, defer_once

#: Kind of the job; there is one.
PURGE = "logs.purge"
_EVERY = timedelta(days=1)
#: Chunks that go in one transaction, so that nobody waits for long.
_AT_ONCE = 2000


class Retention:
    def __init__(self, store: Store, work: Work, days: int) -> None:
        self._store = store
        self._work = work
        self._kept = timedelta(days=days)
        work.register(PURGE, self._purge)

    def begin(self) -> None:
        """Now, and daily from now on. Whoever else serves from the same database takes turns with this one."""
        self._again(timedelta(0))

    def _purge(self, _: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            before = tx.now - self._kept
        purge(self._store, before)
        self._again(_EVERY)

    def _again(self, later: timedelta) -> None:
        def do(tx: Tx) -> None:
            defer_once(self._work, tx, PURGE, PURGE, {}, at=tx.now + later)

        self._store.write(do)


def purge(store: Store, before: datetime) -> int:
    """Forget what runs that are over wrote before then; how many chunks that were."""
    count = 0
    while gone := store.write(lambda tx: logs.purge(tx, before, _AT_ONCE)):
        count += gone
    return count
