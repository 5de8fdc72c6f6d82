"""A job engine that runs jobs when the test requests it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Handler, Work
from support import query


def count_jobs(store: Store) -> int:
    """Return the number of jobs that have not ended."""
    with store.read() as tx:
        return query.count(tx, "jobs")


class ManualWork(Work):
    """Keeps jobs in a list. Do not call ``run`` after a transaction that was rolled back."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.jobs: list[tuple[str, str, Mapping[str, Any], datetime | None]] = []

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        tx.after_commit(lambda: self.jobs.append((kind, key, args, at)))

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        tx.after_commit(lambda: self._forget(kind, key))

    def is_pending(self, tx: Tx, kind: str, key: str) -> bool:
        return any(job[:2] == (kind, key) for job in self.jobs)

    def register(self, kind: str, handler: Handler, *, threads: int = 0) -> None:
        self.handlers[kind] = handler

    def start(self) -> None:
        pass

    def stop(self, timeout: float = 5) -> None:
        pass

    def run(self, kind: str) -> int:
        """Run the jobs of that kind and those that they defer, regardless of deadlines. Return their number."""
        count = 0
        while done := self.step(kind):
            count += done
        return count

    def step(self, kind: str) -> int:
        """Run the current jobs of that kind. Return their number."""
        count = 0
        for job in [job for job in self.jobs if job[0] == kind]:
            if job not in self.jobs:
                continue  # an earlier job has cancelled this one
            self.jobs.remove(job)
            self.handlers[kind](job[2])
            count += 1
        return count

    def kinds(self) -> list[str]:
        return sorted(job[0] for job in self.jobs)

    def _forget(self, kind: str, key: str) -> None:
        self.jobs = [job for job in self.jobs if job[:2] != (kind, key)]
