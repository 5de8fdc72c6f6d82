"""
Queries for the job queue. A job waits, or a process owns it and runs it.

All times are compared with the clock of the site (``clock``), on PostgreSQL directly with that of the
database server (``@now``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from stoker.store import rows
from stoker.store.query import change, execute, exists, put, scalar, table
from stoker.store.tx import Tx

_SECOND = 1_000_000
#: The conditions of the partial indexes.
_WAITING, _RUNNING = "state = 'WAITING'", "state = 'RUNNING'"
#: Insert a job that is due at a time; None: now. ``add(tx, kind, key, args, at)``.
add: Callable[[Tx, str, str, Mapping[str, Any], datetime | None], None] = execute(
    "INSERT INTO jobs (kind, key, args, due, attempts, state)"
    " VALUES (:kind, :key, :args, coalesce(:at, @now), 0, 'WAITING')"
)
_OF_KEY = f"kind = :kind AND key = :key AND {_WAITING}"
#: Delete the waiting jobs of a kind and key.
cancel: Callable[[Tx, str, str], None] = put(f"DELETE FROM jobs WHERE {_OF_KEY}")
#: Let the waiting jobs of a kind and key start at a time at the latest; return how many there are.
hasten: Callable[[Tx, datetime, str, str], int] = change(
    f"UPDATE jobs SET due = CASE WHEN due > :at THEN :at ELSE due END WHERE {_OF_KEY}"
)
#: Return whether a job of a kind and key waits. No process starts it before the transaction ends. Locked, so that a job
#: that another transaction is about to take or cancel does not count as pending.
is_pending: Callable[[Tx, str, str], bool] = exists(f"SELECT seq FROM jobs WHERE {_OF_KEY} LIMIT 1 @for_share")
#: NOT IN: PostgreSQL reads the few running jobs once. For NOT EXISTS, it may join the whole table.
_STARTABLE = f"{_WAITING} AND kind @in(kinds) AND (kind, key) NOT IN (SELECT kind, key FROM jobs WHERE {_RUNNING})"
_take: Callable[[Tx, Sequence[str], int, str, timedelta], list[tuple[Any, ...]]] = table(
    f"""WITH candidates AS (SELECT seq, kind, key, due FROM jobs WHERE {_STARTABLE} AND due <= @now
        ORDER BY due, seq LIMIT :count @for_update @skip_locked)
    UPDATE jobs SET state = 'RUNNING', owner = :owner, leased_until = @now + :lease
    WHERE seq IN (SELECT seq FROM (SELECT seq, row_number() OVER (PARTITION BY kind, key ORDER BY due, seq) AS place
        FROM candidates) AS ranked WHERE place = 1)
    RETURNING seq, kind, key, args, attempts"""
)
_find_wait: Callable[[Tx, Sequence[str], timedelta], int | None] = scalar(
    f"SELECT due - @now FROM jobs WHERE {_STARTABLE} AND due <= @now + :within ORDER BY due, seq LIMIT 1"
)
_IS_DUE = f"{_WAITING} AND due <= @now"
_count: Callable[[Tx], list[tuple[Any, ...]]] = table(
    f"""SELECT count(*) FILTER (WHERE {_IS_DUE}), count(*) FILTER (WHERE {_RUNNING}),
    count(*) FILTER (WHERE {_WAITING} AND due > @now), coalesce(@now - min(due) FILTER (WHERE {_IS_DUE}), 0)
    FROM jobs"""
)
_RETURNED = "state = 'WAITING', owner = NULL, leased_until = NULL"
#: Delete a job that has ended, if its owner still owns it: ``complete(tx, owner, seq)``.
complete: Callable[[Tx, str, int], None] = execute("DELETE FROM jobs WHERE owner = :owner AND seq = :seq")
_retry: Callable[[Tx, timedelta, str, str, int], None] = execute(
    f"UPDATE jobs SET {_RETURNED}, due = @now + :pause, attempts = attempts + 1, last_error = :error"
    " WHERE owner = :owner AND seq = :seq"
)
_renew: Callable[[Tx, timedelta, str, Collection[int]], None] = execute(
    "UPDATE jobs SET leased_until = @now + :lease WHERE owner = :owner AND seq @in_numbers(running)"
)
#: Return all jobs of an owner to the queue.
release: Callable[[Tx, str], None] = execute(f"UPDATE jobs SET {_RETURNED} WHERE {_RUNNING} AND owner = :owner")
#: Return the jobs whose lease has expired to the queue, except for the running ones that are given by their ``seq``.
#: Return their kinds and keys. These are the jobs of ended processes, and jobs that were taken in a commit whose
#: confirmation was lost.
release_expired: Callable[[Tx, Collection[int]], list[tuple[str, str]]] = table(
    f"UPDATE jobs SET {_RETURNED}, attempts = attempts + 1, last_error = 'its lease has expired'"
    f" WHERE {_RUNNING} AND leased_until <= @now AND NOT seq @in_numbers(running) RETURNING kind, key"
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
    ((due, running, later, lag),) = _count(tx)
    return Backlog(int(due), int(running), int(later), max(0.0, int(lag) / _SECOND))


def take(tx: Tx, owner: str, kinds: Sequence[str], count: int, lease: float) -> list[Job]:
    """
    Give ``owner`` up to ``count`` due jobs of these kinds for ``lease`` seconds, and return them.

    Jobs of a kind and key of which one is running are excluded. May return fewer jobs than are due: jobs that other
    transactions have locked, and jobs of the same kind and key, follow in a later call. Raises UniqueViolation if
    another process takes a job of the same kind and key at the same time.
    """
    taken = _take(tx, kinds, count, owner, timedelta(seconds=lease))
    return [
        Job(seq=seq, kind=kind, key=key, args=rows.load(args), attempts=attempts)
        for seq, kind, key, args, attempts in taken
    ]


def seconds_until_due(tx: Tx, kinds: Sequence[str], within: float) -> float:
    """Return the seconds until the next job of these kinds can start, at most ``within``; negative if it is late."""
    micros = _find_wait(tx, kinds, timedelta(seconds=within))
    return within if micros is None else micros / _SECOND


def retry(tx: Tx, owner: str, seq: int, pause: float, error: str) -> None:
    """Let a failed job wait for ``pause`` seconds, and record its error, if ``owner`` still owns it."""
    _retry(tx, timedelta(seconds=pause), error, owner, seq)


def renew(tx: Tx, owner: str, running: Collection[int], lease: float) -> None:
    """Extend the leases of jobs that ``owner`` runs, given by their ``seq``, to ``lease`` seconds from now."""
    _renew(tx, timedelta(seconds=lease), owner, running)
