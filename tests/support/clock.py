"""Moving what is stored into the past, so that no test waits for it to be over."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

import sqlalchemy as sa

from stoker.store.open import Store
from support.work import HeldWork


def age(store: Store, table: sa.Table, seconds: int) -> None:
    """All times in the table are so much earlier."""
    times = [column for column in table.c if column.name == "at" or column.name.endswith(("_at", "_until"))]
    past = sa.update(table).values({column: column - seconds * 1_000_000 for column in times})

    def do(tx) -> None:
        tx.run(past)

    store.write(do)


class Clock:
    """What time every transaction is to find it is; runs the jobs that are due by then."""

    def __init__(self, now: datetime) -> None:
        self.moment = now

    def now(self, _zone: tzinfo) -> datetime:
        return self.moment

    def until(self, work: HeldWork, text: str) -> None:
        """Each job in its time, up to then."""
        end = datetime.fromisoformat(text).replace(tzinfo=UTC)
        while due := sorted((at, n) for n, (_, _, _, at) in enumerate(work.jobs) if at is not None and at <= end):
            at, place = due[0]
            self.moment = max(self.moment, at)
            kind, _, args, _ = work.jobs.pop(place)
            work.handlers[kind](args)
        self.moment = end
