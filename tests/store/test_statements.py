"""Both databases accept every statement of the store, and those for several ids use an index for any number of them."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from stoker import store as package
from stoker.store import configs, deployments, documents, servers, targets
from stoker.store.query import Query
from stoker.store.sql import Statement

#: Statements for one database.
ONLY = {
    "postgresql": ("tx._SHARED_LOCK", "tx._ADVISORY_LOCK", "postgresql._NOT_DURABLE"),
    "sqlite": ("maintenance._PAGES", "maintenance._FREE"),
}


def statements() -> Iterator[tuple[str, Statement]]:
    for module in pkgutil.iter_modules(package.__path__):
        for name, value in vars(importlib.import_module(f"stoker.store.{module.name}")).items():
            for part in _parts(value):
                yield f"{module.name}.{name}", part


def _parts(value: Any) -> Iterator[Statement]:
    if isinstance(value, Statement):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)
    elif isinstance(value, Query):
        yield value.statement
    elif hasattr(value, "codec"):
        yield from _parts(list(vars(value).values()))


def test_the_database_accepts_every_statement(store):
    """It knows the tables, columns and functions, and PostgreSQL can derive the types of the parameters."""
    plain = {statement: name for name, statement in statements()}
    assert len(plain) > 250
    with store.session() as driver:
        for statement, name in plain.items():
            if any(name in names for dialect, names in ONLY.items() if dialect != store.dialect):
                continue
            if store.dialect == "sqlite":
                text, names = statement.sqlite
                driver.execute(f"EXPLAIN {text}", [None] * len(names))
            else:
                result = driver.pgconn.prepare(b"", statement.postgresql[0])
                assert not result.error_message, f"{name}: {result.error_message.decode()}"


#: Queries for several ids.
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
