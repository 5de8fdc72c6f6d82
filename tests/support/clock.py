"""Moves stored times into the past and clocks into the future, so that no test waits for times to pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from stoker.store.open import Store
from support import query
from support.databases import missing
from support.schema import TABLES
from support.work import ManualWork

#: Columns with times whose names do not end as usual.
_TIMES = ("at", "last_seen")


def age(store: Store, table: str, seconds: int) -> None:
    """Move all times in the table into the past by ``seconds``."""
    times = [column for column in TABLES[table] if column.endswith(("_at", "_until")) or column in _TIMES]
    changes = ", ".join(f"{column} = {column} - {seconds * 1_000_000}" for column in times)
    store.write(lambda tx: query.change(tx, f"UPDATE {table} SET {changes}"))


class Clock:
    """Replaces the time of all stores, and runs the jobs that are due by then."""

    def __init__(self, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moment = now
        monkeypatch.setattr("stoker.store.clock.Clock.now", self.now)

    def now(self) -> datetime:
        return self.moment

    def until(self, work: ManualWork, text: str) -> None:
        """Run each job at its time, up to the time ``text``."""
        end = datetime.fromisoformat(text).replace(tzinfo=UTC)
        while due := sorted((at, n) for n, (_, _, _, at) in enumerate(work.jobs) if at is not None and at <= end):
            at, place = due[0]
            self.moment = max(self.moment, at)
            kind, _, args, _ = work.jobs.pop(place)
            work.handlers[kind](args)
        self.moment = end


#: libfaketime 0.9.10 passes negative times to the kernel when ``time.sleep`` sleeps by the monotonic clock.
_SLEEP = """import select
import time

time.sleep = lambda seconds: select.select((), (), (), seconds)[0]
"""


class FakeTime:
    """
    The clock of processes that start with ``variables``: this computer's, until ``move``.

    The monotonic clocks of the processes do not move. Without libfaketime, skips the test; under CI, fails.
    """

    def __init__(self, folder: Path) -> None:
        libraries = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
        if not libraries:
            missing("libfaketime is not installed; .ci/run names its package")
        self._file = folder / "clock"
        self.move(timedelta())
        modules = folder / "clock-modules"
        modules.mkdir(exist_ok=True)
        modules.joinpath("sitecustomize.py").write_text(_SLEEP)
        self.variables = {
            "LD_PRELOAD": str(libraries[0]),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "PYTHONPATH": str(modules),
        }

    def move(self, ahead: timedelta) -> None:
        """Set how far the clock is ahead of this computer's."""
        fresh = self._file.with_name("clock.new")  # a process may read the file at any time
        fresh.write_text(f"{ahead.total_seconds():+.0f}s")
        fresh.replace(self._file)
