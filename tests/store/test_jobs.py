"""The cost of taking jobs: neither waiting jobs nor those of other kinds slow it down."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from stoker.store import jobs
from stoker.store.open import Store
from stoker.store.sql import Statement, sql
from stoker.store.tx import Tx

KINDS = ["a", "b"]
NOW = datetime.now(UTC)


def fill(store: Store, count: int, kind: str, at: datetime | None) -> None:
    store.write(lambda tx: [jobs.add(tx, kind, f"{kind}{n}", {}, at) for n in range(count)])


class Statements:
    """The statements of a transaction, with their parameters."""

    def __init__(self, tx: Tx) -> None:
        self._tx = tx
        self.all: list[tuple[Statement, Any]] = []
        self._connection: Any = tx.connection
        self.dialect = tx.connection.dialect
        tx.connection = self

    def execute(self, batch: Any) -> Any:
        """Record a batch, and execute it on the transaction's connection."""
        self.all += [(statement, values) for statement, (values, *_) in batch]
        return self._connection.execute(batch)

    def plans(self) -> list[Any]:
        """Return the plan of each statement. On PostgreSQL, this executes the statements again."""
        recorded, self.all = self.all, []
        postgresql = self.dialect == "postgresql"
        explain = "EXPLAIN (ANALYZE, FORMAT JSON)" if postgresql else "EXPLAIN QUERY PLAN"
        results = [self._tx.fetch_all(sql(f"{explain} {statement.text}"), values) for statement, values in recorded]
        if postgresql:
            return [plan[0][0][0]["Plan"] for plan in results]
        return [[row[3] for row in plan] for plan in results]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def rows_read(node: dict[str, Any]) -> float:
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return (node["Actual Rows"] + removed) * node["Actual Loops"]


@pytest.mark.parametrize("due", [0, 2_000])
def test_thousands_of_waiting_jobs_do_not_slow_taking(store, due):
    """The plans read the index on the due time, and no more rows than they return. There are no table statistics."""
    fill(store, 5_000, "a", NOW + timedelta(hours=1))
    fill(store, due, "b", None)
    fill(store, 5, "a", None)

    def measure(tx: Tx) -> list[Any]:
        statements = Statements(tx)
        assert len(jobs.take(tx, "owner", KINDS, 4, 15)) == 4
        assert jobs.seconds_until_due(tx, KINDS, 3) <= 0
        return statements.plans()

    for sorts, plan in zip((1, 0), store.write(measure), strict=True):
        if store.dialect == "sqlite":
            assert "SEARCH jobs USING INDEX ix_jobs_due (due<?)" in plan
            assert not [line for line in plan if line.startswith("SCAN jobs ") and "uq_jobs_running" not in line]
            # The candidates, at most four, are sorted by key.
            assert sum("ORDER BY" in line for line in plan) == sorts, plan
            continue
        of_jobs = [node for node in nodes(plan) if node.get("Relation Name") == "jobs"]
        assert "ix_jobs_due" in [node.get("Index Name") for node in of_jobs], plan
        assert max(map(rows_read, of_jobs)) <= 8, plan


def test_cancelling_reads_only_the_jobs_of_the_key(store):
    fill(store, 2_000, "a", NOW + timedelta(hours=1))

    def measure(tx: Tx) -> list[Any]:
        statements = Statements(tx)
        jobs.cancel(tx, "a", "a7")
        jobs.is_pending(tx, "a", "a8")
        return statements.plans()

    for plan in store.write(measure):
        if store.dialect == "sqlite":
            assert any("ix_jobs_key_kind" in line for line in plan), plan
        else:
            of_jobs = [node for node in nodes(plan) if node.get("Relation Name") == "jobs"]
            assert max(map(rows_read, of_jobs)) <= 1, plan


def test_jobs_of_one_key_are_taken_one_at_a_time_in_the_order_of_their_due_times(store):
    for n in (3, 1, 2):
        at = NOW - timedelta(seconds=10 - n)
        store.write(lambda tx, n=n, at=at: jobs.add(tx, "a", "key", {"n": n}, at))
    taken = []
    for _ in range(3):
        (job,) = store.write(lambda tx: jobs.take(tx, "owner", KINDS, 4, 15))
        assert store.write(lambda tx: jobs.take(tx, "other", KINDS, 4, 15)) == []
        store.write(lambda tx, job=job: jobs.complete(tx, "owner", job.seq))
        taken.append(job.args["n"])
    assert taken == [1, 2, 3]


def test_only_the_owner_of_a_job_ends_it(store):
    """A process that was suspended for longer than its lease has lost its jobs."""
    fill(store, 1, "a", None)
    (job,) = store.write(lambda tx: jobs.take(tx, "first", KINDS, 4, -1))
    assert store.write(lambda tx: jobs.release_expired(tx, [job.seq])) == []
    assert store.write(lambda tx: jobs.release_expired(tx, [])) == [("a", "a0")]
    (again,) = store.write(lambda tx: jobs.take(tx, "second", KINDS, 4, 15))
    assert (again.seq, again.attempts) == (job.seq, 1)
    store.write(lambda tx: jobs.complete(tx, "first", job.seq))
    store.write(lambda tx: jobs.retry(tx, "first", job.seq, 0, "late"))
    store.write(lambda tx: jobs.release(tx, "first"))
    assert store.write(lambda tx: jobs.release_expired(tx, [])) == []
    assert store.write(lambda tx: jobs.take(tx, "third", KINDS, 4, 15)) == []


def test_a_renewed_lease_does_not_expire(store):
    fill(store, 1, "a", None)
    (job,) = store.write(lambda tx: jobs.take(tx, "first", KINDS, 4, -1))
    store.write(lambda tx: jobs.renew(tx, "first", [job.seq], 15))
    assert store.write(lambda tx: jobs.release_expired(tx, [])) == []


def test_a_job_whose_taking_was_not_confirmed_returns_to_the_queue(store):
    """The connection broke during the commit, so the process owns a job that it does not know and does not run."""
    fill(store, 2, "a", None)
    known, _ = store.write(lambda tx: jobs.take(tx, "first", KINDS, 2, -1))
    store.write(lambda tx: jobs.renew(tx, "first", [known.seq], 15))
    assert len(store.write(lambda tx: jobs.release_expired(tx, [known.seq]))) == 1
    assert len(store.write(lambda tx: jobs.take(tx, "first", KINDS, 2, 15))) == 1
