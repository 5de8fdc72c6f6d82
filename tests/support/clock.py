"""Moves stored times into the past, so that no test waits for them to pass."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

import sqlalchemy as sa

from stoker.store.open import Store
from support.work import ManualWork


def age(store: Store, table: sa.Table, seconds: int) -> None:
    """Move all times in the table into the past by ``seconds``."""
    times = [column for column in table.c if column.name == "at" or column.name.endswith(("_at", "_until"))]
    past = sa.update(table).values({column: column - seconds * 1_000_000 for column in times})

    def do(tx) -> None:
        tx.run(past)

    store.write(do)


class Clock:
    """Sets the current time of all transactions, and runs the jobs that are due by then."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self, _zone: tzinfo) -> datetime:
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
