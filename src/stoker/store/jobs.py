"""
Queries for the job queue. A job waits, or a process owns it and runs it.

All times are compared with the clock of the site (``clock``), on PostgreSQL directly with that of the database server.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles

from stoker.store import rows
from stoker.store.schema.jobs import RUNNING, WAITING, jobs
from stoker.store.tx import Tx

_SECOND = 1_000_000


class _Now(sa.sql.functions.FunctionElement[int]):
    """The time of the statement in microseconds since 1970; on SQLite, the parameter that ``_at_now`` adds."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(_Now, "postgresql")
def _now_on_postgresql(*_: Any, **__: Any) -> str:
    return "CAST(extract(epoch FROM statement_timestamp()) * 1000000 AS BIGINT)"


@compiles(_Now, "sqlite")
def _now_on_sqlite(now: _Now, compiler: sa.sql.compiler.SQLCompiler, **options: Any) -> str:
    return compiler.process(now.clauses, **options)


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger())


_NOW = _Now(_number("now"))


def _at_now(tx: Tx, **values: Any) -> dict[str, Any]:
    """Return the parameters of a statement with ``_NOW``."""
    return values if tx.connection.dialect.name == "postgresql" else {**values, "now": rows.to_micros(tx.now)}


_ADD = (
    sa.insert(jobs)
    .values(
        kind=sa.bindparam("kind"),
        key=sa.bindparam("key"),
        args=sa.bindparam("args"),
        due=sa.func.coalesce(_number("at"), _NOW),
        attempts=sa.literal_column("0"),
        state=sa.literal_column("'WAITING'"),
    )
    .inline()
)
_OF_KEY = (jobs.c.kind == sa.bindparam("of"), jobs.c.key == sa.bindparam("keyed"), WAITING)
_CANCEL = sa.delete(jobs).where(*_OF_KEY)
_HASTEN = (
    sa.update(jobs).where(*_OF_KEY).values(due=sa.case((jobs.c.due > _number("at"), _number("at")), else_=jobs.c.due))
)
# Locked, so that a job that another transaction is about to take or cancel does not count as pending.
_IS_PENDING = sa.select(jobs.c.seq).where(*_OF_KEY).limit(1).with_for_update(read=True)

_STARTABLE = (
    WAITING,
    jobs.c.kind.in_(sa.bindparam("kinds", expanding=True)),
    # NOT IN: PostgreSQL reads the few running jobs once. For NOT EXISTS, it may join the whole table.
    sa.tuple_(jobs.c.kind, jobs.c.key).not_in(sa.text("(SELECT kind, key FROM jobs WHERE state = 'RUNNING')")),
)
_candidates = (
    sa.select(jobs.c.seq, jobs.c.kind, jobs.c.key, jobs.c.due)
    .where(*_STARTABLE, jobs.c.due <= _NOW)
    .order_by(jobs.c.due, jobs.c.seq)
    .limit(sa.bindparam("count"))
    .with_for_update(skip_locked=True)
    .cte("candidates")
)
_place = sa.func.row_number().over(
    partition_by=(_candidates.c.kind, _candidates.c.key), order_by=(_candidates.c.due, _candidates.c.seq)
)
_ranked = sa.select(_candidates.c.seq, _place.label("place")).subquery()
_TAKE = (
    sa.update(jobs)
    .where(jobs.c.seq.in_(sa.select(_ranked.c.seq).where(_ranked.c.place == sa.literal_column("1"))))
    .values(state="RUNNING", owner=sa.bindparam("by"), leased_until=_NOW + _number("lease"))
    .returning(jobs.c.seq, jobs.c.kind, jobs.c.key, jobs.c.args, jobs.c.attempts)
)
_NEXT_DUE = (
    sa.select(jobs.c.due - _NOW)
    .where(*_STARTABLE, jobs.c.due <= _NOW + _number("within"))
    .order_by(jobs.c.due, jobs.c.seq)
    .limit(1)
)


def _count(*conditions: sa.ColumnElement[bool] | sa.TextClause) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(sa.case((sa.and_(*conditions), 1), else_=0)), 0)


_IS_DUE = (WAITING, jobs.c.due <= _NOW)
_BACKLOG = sa.select(
    _count(*_IS_DUE),
    _count(RUNNING),
    _count(WAITING, jobs.c.due > _NOW),
    sa.func.coalesce(_NOW - sa.func.min(sa.case((sa.and_(*_IS_DUE), jobs.c.due))), 0),
)

_OWN = jobs.c.owner == sa.bindparam("by")
_ONE_OWN = (_OWN, jobs.c.seq == sa.bindparam("id"))
_RETURNED = {"state": "WAITING", "owner": None, "leased_until": None}
_COMPLETE = sa.delete(jobs).where(*_ONE_OWN)
_RETRY = (
    sa.update(jobs)
    .where(*_ONE_OWN)
    .values(_RETURNED | {"due": _NOW + _number("pause"), "attempts": jobs.c.attempts + 1})
    .values(last_error=sa.bindparam("error"))
)
_IN_THREADS = jobs.c.seq.in_(sa.bindparam("running", expanding=True))
_RENEW = sa.update(jobs).where(_OWN, _IN_THREADS).values(leased_until=_NOW + _number("lease"))
_RELEASE = sa.update(jobs).where(RUNNING, _OWN).values(_RETURNED)
_TAKE_OVER = (
    sa.update(jobs)
    .where(RUNNING, jobs.c.leased_until <= _NOW, sa.not_(_IN_THREADS))
    .values(_RETURNED | {"attempts": jobs.c.attempts + 1, "last_error": "its lease has expired"})
    .returning(jobs.c.kind, jobs.c.key)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A stored job. ``attempts`` is the number of failed attempts."""

    seq: int
    kind: str
    key: str
    args: Mapping[str, Any]
    attempts: int


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of jobs that wait although they are due, that run, and that are due later; the oldest one's wait."""

    due: int
    running: int
    later: int
    lag_seconds: float


def backlog(tx: Tx) -> Backlog:
    """Count the jobs of all processes."""
    due, running, later, lag = tx.fetch_all(_BACKLOG, _at_now(tx))[0]
    return Backlog(int(due), int(running), int(later), max(0.0, int(lag) / _SECOND))


def add(tx: Tx, kind: str, key: str, args: Mapping[str, Any], at: datetime | None) -> None:
    """Insert a job that is due at this time; None: now."""
    values = _at_now(tx, kind=kind, key=key, args=rows.dump(args), at=rows.to_micros_optional(at))
    tx.execute_fast(_ADD, values)


def cancel(tx: Tx, kind: str, key: str) -> None:
    """Delete the waiting jobs of this kind and key."""
    tx.put(_CANCEL, {"of": kind, "keyed": key})


def hasten(tx: Tx, kind: str, key: str, at: datetime) -> bool:
    """Let the waiting jobs of this kind and key start at this time at the latest. Return whether there is one."""
    values = {"of": kind, "keyed": key, "at": rows.to_micros(at)}
    return tx.run(_HASTEN, values).rowcount > 0


def is_pending(tx: Tx, kind: str, key: str) -> bool:
    """Return whether a job of this kind and key waits. No process starts it before the transaction ends."""
    return tx.run(_IS_PENDING, {"of": kind, "keyed": key}).first() is not None


def take(tx: Tx, owner: str, kinds: Sequence[str], count: int, lease: float) -> list[Job]:
    """
    Give ``owner`` up to ``count`` due jobs of these kinds for ``lease`` seconds, and return them.

    Jobs of a kind and key of which one is running are excluded. May return fewer jobs than are due: jobs that other
    transactions have locked, and jobs of the same kind and key, follow in a later call. Raises IntegrityError if
    another process takes a job of the same kind and key at the same time.
    """
    values = _at_now(tx, by=owner, kinds=kinds, count=count, lease=int(lease * _SECOND))
    return [
        Job(seq=row.seq, kind=row.kind, key=row.key, args=rows.load(row.args), attempts=row.attempts)
        for row in tx.run(_TAKE, values)
    ]


def seconds_until_due(tx: Tx, kinds: Sequence[str], within: float) -> float:
    """Return the seconds until the next job of these kinds can start, at most ``within``; negative if it is late."""
    micros = tx.run(_NEXT_DUE, _at_now(tx, kinds=kinds, within=int(within * _SECOND))).scalar()
    return within if micros is None else micros / _SECOND


def complete(tx: Tx, owner: str, seq: int) -> None:
    """Delete a job that has ended, if ``owner`` still owns it."""
    tx.execute_fast(_COMPLETE, {"by": owner, "id": seq})


def retry(tx: Tx, owner: str, seq: int, pause: float, error: str) -> None:
    """Let a failed job wait for ``pause`` seconds, and record its error, if ``owner`` still owns it."""
    tx.run(_RETRY, _at_now(tx, by=owner, id=seq, pause=int(pause * _SECOND), error=error))


def renew(tx: Tx, owner: str, running: Collection[int], lease: float) -> None:
    """Extend the leases of jobs that ``owner`` runs, given by their ``seq``, to ``lease`` seconds from now."""
    tx.run(_RENEW, _at_now(tx, by=owner, running=running, lease=int(lease * _SECOND)))


def release(tx: Tx, owner: str) -> None:
    """Return all jobs of ``owner`` to the queue."""
    tx.run(_RELEASE, {"by": owner})


def release_expired(tx: Tx, running: Collection[int]) -> list[tuple[str, str]]:
    """
    Return the jobs whose lease has expired to the queue, except for ``running``. Return their kinds and keys.

    These are the jobs of ended processes, and jobs that were taken in a commit whose confirmation was lost.
    """
    return [(row.kind, row.key) for row in tx.run(_TAKE_OVER, _at_now(tx, running=running))]
