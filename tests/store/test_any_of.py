"""Queries for several ids: one statement for any number, which uses an index."""

from __future__ import annotations

import re

import psycopg
import pytest

from stoker.store import (
    configs,
    deployments,
    documents,
    servers,
    targets,
)

QUERIES = {
    "servers.summarize_facts": servers._SUMMARIES._several,
    "configs.prime": configs._SEVERAL,
    "deployments.prime_with_configs": deployments._WITH_CONFIGS,
    "deployments.find_owners": deployments._OWNERS,
    "documents.to_run_on": documents._TO_RUN,
    "documents.agent_heads": documents._AGENT_HEADS,
    "servers.prime_governed": servers._SEVERAL_STAYING,
    "servers.prime": servers.SERVERS._several,
    "targets.prime": targets._OF_DEPLOYMENTS,
}


@pytest.mark.parametrize("name", QUERIES)
def test_queries_for_several_ids_scan_no_table(store, name):
    statement = QUERIES[name]
    with store.session() as driver:
        if store.dialect == "sqlite":
            explained = driver.execute(f"EXPLAIN QUERY PLAN {statement.sqlite[0]}", ["[]"])
            plan = [row[3] for row in explained.fetchall()]
            assert [line for line in plan if re.match("SCAN (?!json_each)", line)] == []
        else:
            driver.execute("SET enable_seqscan = off")  # the tables are empty
            explain = f"EXPLAIN {statement.postgresql[0].decode()}"
            plan = [row[0] for row in psycopg.RawCursor(driver).execute(explain, ["[]"]).fetchall()]
            assert [line for line in plan if "Seq Scan" in line] == []
    assert plan
    if name == "documents.to_run_on":  # reads no deployments that have ended
        assert [line for line in plan if "ix_deployments_to_run" in line]
