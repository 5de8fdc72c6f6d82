"""The SQLite runner's jobs in SQL."""

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
_WAITS = sa.select(jobs.c.seq).where(
    jobs.c.kind == sa.bindparam("of"), jobs.c.key == sa.bindparam("keyed"), jobs.c.seq != sa.bindparam("but")
)
_NEAREST = (
    sa.select(jobs)
    .where(
        # Not the bare column: SQLite would take the index on kind, and then sort every deadline there is.
        (jobs.c.kind + "").in_(sa.bindparam("kinds", expanding=True)),
        sa.not_((jobs.c.kind + "/" + jobs.c.key).in_(sa.bindparam("running", expanding=True))),
    )
    .order_by(jobs.c.due, jobs.c.seq)
    .limit(1)
)
_DONE = sa.delete(jobs).where(jobs.c.seq == sa.bindparam("id"))
_AGAIN = (
    sa.update(jobs)
    .where(jobs.c.seq == sa.bindparam("id"))
    .values(due=sa.bindparam("at"), attempts=jobs.c.attempts + 1, last_error=sa.bindparam("error"))
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    seq: int
    kind: str
    key: str
    args: Mapping[str, Any]
    due: datetime
    attempts: int


def add(tx: Tx, kind: str, key: str, args: Mapping[str, Any], due: datetime) -> None:
    tx.run(
        _ADD,
        {"kind": kind, "key": key, "args": rows.dump(args), "due": rows.stamp(due), "attempts": 0, "last_error": None},
    )


def cancel(tx: Tx, kind: str, key: str, *, but: int | None = None) -> None:
    """``but`` is the one under way, if there is one."""
    tx.run(_CANCEL, {"kind": kind, "key": key, "but": but or 0})


def waits(tx: Tx, kind: str, key: str, *, but: int | None = None) -> bool:
    """``but`` is the one under way, if there is one."""
    return tx.run(_WAITS, {"of": kind, "keyed": key, "but": but or 0}).first() is not None


def nearest(tx: Tx, kinds: Sequence[str], running: Sequence[tuple[str, str]]) -> Job | None:
    """The job due first, now or later, of these kinds and of none of the (kind, key) that run."""
    busy = [f"{kind}/{key}" for kind, key in running]
    row = tx.run(_NEAREST, {"kinds": list(kinds), "running": busy}).first()
    if row is None:
        return None
    return Job(
        seq=row.seq,
        kind=row.kind,
        key=row.key,
        args=rows.load(row.args),
        due=rows.moment(row.due),
        attempts=row.attempts,
    )


def done(tx: Tx, seq: int) -> None:
    tx.run(_DONE, {"id": seq})


def again(tx: Tx, seq: int, at: datetime, error: str) -> None:
    tx.run(_AGAIN, {"id": seq, "at": rows.stamp(at), "error": error})
