"""PostgreSQL reads a large fleet by indexes only, with its own estimates."""

from __future__ import annotations

import re

import pytest
from bench.scale import rows

from stoker.store import targets
from support import databases

#: Enough that PostgreSQL prefers an index wherever one fits.
SERVERS = 20_000


@pytest.fixture(scope="module")
def fleet(postgresql_server):
    with databases.postgresql_url(postgresql_server) as url, rows.filled_store(url, SERVERS) as store:
        yield store


@pytest.mark.parametrize("name", rows.queries(SERVERS))
def test_no_query_of_servers_scans_their_table(fleet, name):
    plan = rows.explain(fleet, *rows.queries(SERVERS)[name])
    assert plan
    assert [line for line in plan if re.search("Seq Scan on (servers|documents|deployments)", line)] == []


@pytest.mark.parametrize("name", ["server of a machine", "taken names"])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_enrollment_reads_no_other_machines_on_sqlite(store, name):
    query, values = rows.queries(SERVERS)[name]
    with store.session() as driver:
        text, names = query.sqlite
        explained = driver.execute(f"EXPLAIN QUERY PLAN {text}", [values[name] for name in names])
        searched = [row[3] for row in explained.fetchall() if " servers " in row[3]]
    assert searched
    assert all(re.search(r"\(\w+=\? AND \w+=\?\)", line) for line in searched)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_targets_that_may_start_are_found_without_the_blocked_ones_on_sqlite(store):
    text, names = targets.list_startable.statement.sqlite
    with store.session() as driver:
        ((*_, searched),) = driver.execute(f"EXPLAIN QUERY PLAN {text}", [None] * len(names)).fetchall()
    assert "ix_trigger_targets_startable" in searched
