"""
Deletes old records in the background, each kind after its own number of days.

Each kind has one job for all processes, which deletes in small transactions, lets other writers go first, and defers
itself to the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stoker.store import audit, events, runs, stacks
from stoker.store.maintenance import in_batches, reclaim
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work.queue import Work

#: Kind of the jobs; the key is the kind of records.
PURGE = "retention.purge"
_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Kind:
    """
    A kind of records. ``delete`` deletes those from before a time and returns their number; ``every`` is the pause
    between two passes.
    """

    name: str
    noun: str
    delete: Callable[[Store, datetime], int]
    every: timedelta = _HOUR


def _delete(purge: Callable[[Tx, datetime, int], int]) -> Callable[[Store, datetime], int]:
    return lambda store, before: in_batches(store, lambda tx, most: purge(tx, before, most))


#: The kinds that need nothing but the database.
KINDS = (
    Kind("stacks", "records of deleted stacks", _delete(stacks.purge)),
    Kind("events", "events", _delete(events.purge)),
    Kind("runs", "earlier runs", _delete(runs.purge), _DAY),
    Kind("logs", "pieces of output", _delete(runs.purge_output)),
    Kind("audit", "entries of the audit log", _delete(audit.purge)),
)


class Retention:
    """Runs the passes of all kinds."""

    def __init__(self, store: Store, work: Work, days: Mapping[str, float], more: Sequence[Kind] = ()) -> None:
        """
        Register the jobs' handler.

        ``days`` maps the name of each kind to the age at which its records are deleted. ``more`` are the kinds of
        higher layers.
        """
        self._store = store
        self._work = work
        self._days = days
        self._kinds = {kind.name: kind for kind in (*KINDS, *more)}
        # One thread, so that kinds take turns and other jobs need not wait for them.
        work.register(PURGE, self._run, threads=1)

    def begin(self) -> None:
        """Begin a pass of each kind now. Processes with one database share the jobs."""

        def do(tx: Tx) -> None:
            for name in self._kinds:
                self._work.defer_once(tx, PURGE, name, {"kind": name})

        self._store.write(do)

    def purge(self, name: str) -> int:
        """Delete all records of a kind that are old enough, and return their number."""
        count = self._kinds[name].delete(self._store, self._store.clock.now() - timedelta(days=self._days[name]))
        reclaim(self._store)
        return count

    def _run(self, args: Mapping[str, Any]) -> None:
        name, metrics = args["kind"], self._store.metrics
        metrics.count_purged(name, self.purge(name))

        def again(tx: Tx) -> None:
            self._work.defer_once(tx, PURGE, name, {"kind": name}, at=tx.now + self._kinds[name].every)

        self._store.write(again)
        metrics.end_retention(name)
