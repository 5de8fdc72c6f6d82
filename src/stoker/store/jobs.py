"""Queries for the jobs of the SQLite queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from stoker.store import rows
from stoker.store.schema import jobs
from stoker.store.tx import Tx

_ADD = sa.insert(jobs)
_CANCEL = sa.delete(jobs).where(
    jobs.c.kind == sa.bindparam("kind"), jobs.c.key == sa.bindparam("key"), jobs.c.seq != sa.bindparam("but")
)
_IS_PENDING = sa.select(jobs.c.seq).where(
    jobs.c.kind == sa.bindparam("of"), jobs.c.key == sa.bindparam("keyed"), jobs.c.seq != sa.bindparam("but")
)
_FREE = (
    sa.select(jobs)
    .where(sa.not_((jobs.c.kind + "/" + jobs.c.key).in_(sa.bindparam("running", expanding=True))))
    .order_by(jobs.c.due, jobs.c.seq)
    .limit(1)
)
# Not the bare column: SQLite would use an index on kind, and then sort all jobs with a deadline.
_NEAREST = _FREE.where((jobs.c.kind + "").in_(sa.bindparam("kinds", expanding=True)))
#: For one kind, so that SQLite reads no jobs of other kinds, however many there are.
_NEAREST_OF_KIND = _FREE.where(jobs.c.kind == sa.bindparam("of"))
_DONE = sa.delete(jobs).where(jobs.c.seq == sa.bindparam("id"))
_AGAIN = (
    sa.update(jobs)
    .where(jobs.c.seq == sa.bindparam("id"))
    .values(due=sa.bindparam("at"), attempts=jobs.c.attempts + 1, last_error=sa.bindparam("error"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A stored job. ``attempts`` is the number of failed attempts."""

    seq: int
    kind: str
    key: str
    args: Mapping[str, Any]
    due: datetime
    attempts: int


def add(tx: Tx, kind: str, key: str, args: Mapping[str, Any], due: datetime) -> None:
    """Insert a job that is due at this time."""
    tx.run(
        _ADD,
        {
            "kind": kind,
            "key": key,
            "args": rows.dump(args),
            "due": rows.to_micros(due),
            "attempts": 0,
            "last_error": None,
        },
    )


def cancel(tx: Tx, kind: str, key: str, *, but: int | None = None) -> None:
    """Delete the jobs of this kind and key; ``but`` is the ``seq`` of the running job, if any."""
    tx.run(_CANCEL, {"kind": kind, "key": key, "but": but or 0})


def is_pending(tx: Tx, kind: str, key: str, *, but: int | None = None) -> bool:
    """Return whether there is a job of this kind and key; ``but`` is the ``seq`` of the running job, if any."""
    return tx.run(_IS_PENDING, {"of": kind, "keyed": key, "but": but or 0}).first() is not None


def nearest(tx: Tx, kinds: Sequence[str], running: Sequence[tuple[str, str]]) -> Job | None:
    """
    Return the job of these kinds that is due first, now or later, or None.

    ``running`` contains the (kind, key) of running jobs; jobs with the same kind and key are excluded.
    """
    busy = [f"{kind}/{key}" for kind, key in running]
    if len(kinds) == 1:
        row = tx.run(_NEAREST_OF_KIND, {"of": kinds[0], "running": busy}).first()
    else:
        row = tx.run(_NEAREST, {"kinds": list(kinds), "running": busy}).first()
    if row is None:
        return None
    return Job(
        seq=row.seq,
        kind=row.kind,
        key=row.key,
        args=rows.load(row.args),
        due=rows.from_micros(row.due),
        attempts=row.attempts,
    )


def complete(tx: Tx, seq: int) -> None:
    """Delete a job that has ended."""
    tx.run(_DONE, {"id": seq})


def retry(tx: Tx, seq: int, at: datetime, error: str) -> None:
    """Set the time of the next attempt of a failed job, and record its error."""
    tx.run(_AGAIN, {"id": seq, "at": rows.to_micros(at), "error": error})
