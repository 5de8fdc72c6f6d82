"""Queries for several ids: one statement for any number, which uses an index."""

from __future__ import annotations

import re

import psycopg
import pytest
import sqlalchemy as sa

from stoker.store import (
    agent_upgrades,
    configs,
    deployments,
    documents,
    rows,
    runs,
    server_facts,
    server_policies,
    servers,
    statements,
    targets,
)
from stoker.store.statement_drivers import compile_statement

QUERIES = {
    "agent_upgrades.find_of_servers": agent_upgrades._ALL_OF_SERVERS,
    "server_facts.summaries": server_facts._OF_SERVERS,
    "agent_upgrades.of_servers": agent_upgrades._OF_SERVERS,
    "configs.preload": configs._ALL_BODIES,
    "deployments.lock_all": deployments._LOCK_ALL,
    "deployments.of_runs": deployments._OF_RUNS,
    "deployments.to_run_on": deployments._TO_RUN,
    "documents.agent_heads": documents._AGENT_HEADS,
    "runs.preload_streams": runs._STREAMS_OF_CURRENT,
    "server_policies.preload": server_policies._STAYING_ALL,
    "servers.preload": servers._SEVERAL,
    "targets.preload": targets._OF_DEPLOYMENTS,
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_for_several_ids_scan_no_table(store, name):
    compiled = compile_statement(QUERIES[name], ("ids",), store.dialect)
    values = compiled.arrange({"ids": "[]"})
    with store.engine.connect() as connection:
        driver = connection.connection.driver_connection
        if store.dialect == "sqlite":
            explained = driver.execute(f"EXPLAIN QUERY PLAN {compiled.sql}", values)
            plan = [row[3] for row in explained.fetchall()]
            assert [line for line in plan if re.match("SCAN (?!json_each)", line)] == []
        else:
            driver.execute("SET enable_seqscan = off")  # the tables are empty
            plan = [row[0] for row in psycopg.RawCursor(driver).execute(f"EXPLAIN {compiled.sql}", values).fetchall()]
            assert [line for line in plan if "Seq Scan" in line] == []
    assert plan
    if name == "deployments.to_run_on":  # reads no deployments that have ended
        assert [line for line in plan if "ix_deployments_to_run" in line]


def test_any_of_selects_the_rows_with_one_of_the_texts(store):
    table = sa.table("alembic_version", sa.column("version_num", sa.String))
    query = sa.select(table.c.version_num).where(statements.AnyOf(table.c.version_num))
    with store.read() as tx:
        ((version,),) = tx.fetch_all(sa.select(table.c.version_num), {})
        assert list(tx.fetch_all(query, {"ids": rows.dump(["x", version, "it's"])})) == [(version,)]
        assert list(tx.fetch_all(query, {"ids": "[]"})) == []
