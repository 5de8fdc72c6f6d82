"""A whole engine for jobs that runs them when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from stoker.store.tx import Tx

Handler = Callable[[Mapping[str, Any]], None]


class HeldWork:
    """Jobs stand in a list. A transaction that is undone must not be followed by ``run``."""

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self.jobs: list[tuple[str, str, Mapping[str, Any], datetime | None]] = []

    def defer(self, tx: Tx, kind: str, key: str, args: Mapping[str, Any], *, at: datetime | None = None) -> None:
        tx.after_commit(lambda: self.jobs.append((kind, key, args, at)))

    def cancel(self, tx: Tx, kind: str, key: str) -> None:
        tx.after_commit(lambda: self._forget(kind, key))

    def waits(self, tx: Tx, kind: str, key: str) -> bool:
        return any(job[:2] == (kind, key) for job in self.jobs)

    def register(self, kind: str, handler: Handler) -> None:
        self.handlers[kind] = handler

    def start(self) -> None:
        pass

    def stop(self, timeout: float = 5) -> None:
        pass

    def run(self, kind: str) -> int:
        """Run what stands there of that kind, deadlines or not, and what that defers; returns how many."""
        count = 0
        while done := self.step(kind):
            count += done
        return count

    def step(self, kind: str) -> int:
        """Run what stands there of that kind now; returns how many."""
        count = 0
        for job in [job for job in self.jobs if job[0] == kind]:
            if job not in self.jobs:
                continue  # called off by one before it
            self.jobs.remove(job)
            self.handlers[kind](job[2])
            count += 1
        return count

    def kinds(self) -> list[str]:
        return sorted(job[0] for job in self.jobs)

    def _forget(self, kind: str, key: str) -> None:
        self.jobs = [job for job in self.jobs if job[:2] != (kind, key)]
