"""A Stoker with very many servers: the durations of its answers, and the plans and durations of its queries."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg

from bench.api import Api
from bench.stoker import connect, running_stoker
from stoker.model.selectors import parse
from stoker.model.server import AgentAccess, Kind
from stoker.store import (
    documents,
    migrate,
    rows,
    server_lists,
    servers,
    site,
)
from stoker.store.open import Store
from stoker.store.pipeline import conninfo
from stoker.store.sql import Statement

PROJECT = "bench"
#: The label ``cell`` has the same value on a thousand servers, as many as one trigger by label selects.
_SERVERS = """
INSERT INTO servers (id, project_id, name, kind, key_generation, agent_access, last_seen, agent_version, hooks, modes,
    hostname, enrollment_id, instance, machine, labels, stands_for, created_at)
SELECT md5(n::text)::uuid::text, %(project)s, 'server-' || n, %(kind)s, 1, %(access)s,
    (extract(epoch FROM now()) * 1000000)::bigint, '1', '["script"]', '[]', 'host-' || n,
    'enrollment', 'instance-' || n, 'machine-' || n,
    '{"cell":"' || n / 1000 || '","tier":"' || (ARRAY['web','db','app'])[1 + n %% 3] || '"}', '{}', 1700000000000000 + n
FROM generate_series(0, %(count)s - 1) AS n
"""
_DOCUMENTS = "INSERT INTO documents (server_id, revision) SELECT id, 1 FROM servers"


@contextmanager
def filled_store(url: str, count: int) -> Iterator[Store]:
    """Yield a store with ``count`` servers in one project, in the empty database ``url`` of a PostgreSQL."""
    store = Store(url)
    try:
        with store.session() as session:
            migrate.upgrade(session, store.dialect)
        fill(store, count)
        yield store
    finally:
        store.close()


def fill(store: Store, count: int, project_id: str = PROJECT) -> None:
    """Insert ``count`` servers with labels, and the revisions of their documents."""
    # A connection of the store would be ended, because the statements take so long.
    with psycopg.connect(conninfo(store.url), autocommit=True) as connection:
        values = {"kind": Kind.ENROLLED.value, "access": AgentAccess.ALLOWED.value}
        connection.execute(_SERVERS, {"project": project_id, "count": count, **values})
        connection.execute(_DOCUMENTS)
        connection.execute("VACUUM ANALYZE servers")
        connection.execute("VACUUM ANALYZE documents")


def queries(count: int, project_id: str = PROJECT) -> Mapping[str, tuple[Statement, Mapping[str, Any]]]:
    """Return the queries of a fleet of ``count`` servers, each with the values of its parameters."""
    ids = rows.dump([str(uuid.UUID(int=number)) for number in range(1000)])
    first = {"project_id": project_id, "limit": 1000, "created_at": -1, "id": ""}
    middle = {**first, "created_at": 1_700_000_000_000_000 + count // 2}
    machine = {
        "enrollment_id": "enrollment",
        "enrollment_too": "enrollment",
        "instance": "instance-x",
        "machine": f"machine-{count // 2}",
    }
    rare, frequent = ({"required": rows.dump(labels)} for labels in ({"cell": "7"}, {"tier": "web"}))
    return {
        "first page of servers": (server_lists._PAGE, first),
        "page in the middle": (server_lists._PAGE, middle),
        "servers with a label": (server_lists._LABELED_IDS, {**first, **rare}),
        "page of a label that a third has": (server_lists._IDS_IN_WINDOW, {**middle, **frequent, "window": 8000}),
        "selected servers": (server_lists._SEVERAL, {"ids": ids}),
        "selected servers with facts": (server_lists._SEVERAL_WITH_FACTS, {"ids": ids}),
        "part of a selection without label": (server_lists._SELECTED, middle),
        "part of a selection by fact": (server_lists._SELECTED_WITH_FACTS, middle),
        "server of a machine": (servers._REDEEMED, machine),
        "taken names": (
            _statement(servers.find_names),
            {"project_id": project_id, "names": rows.dump(["server-1", "server-x"])},
        ),
        "server by name": (
            _statement(servers.find_by_name),
            {"project_id": project_id, "name": f"server-{count // 2}"},
        ),
        "servers by id": (servers.SERVERS._several, {"ids": ids}),
        "facts of a page": (servers._SUMMARIES._several, {"ids": ids}),
        "runs of a batch of polls": (documents._TO_RUN, {"ids": ids}),
    }


def _statement(query: Any) -> Statement:
    """Return the statement of a function (``stoker.store.query``)."""
    statement: Statement = query.statement
    return statement


def explain(store: Store, query: Statement, values: Mapping[str, Any]) -> list[str]:
    """Return the lines of PostgreSQL's plan."""
    text, names = query.postgresql
    with store.session() as driver:
        cursor: Any = psycopg.RawCursor(driver)
        return [line for (line,) in cursor.execute(b"EXPLAIN " + text, [values[name] for name in names])]


def measure_rows(server: str, count: int) -> Mapping[str, Any]:
    """
    Start a Stoker, and fill its database. Return the durations of its answers, and durations and plans of queries.

    The database is dropped afterwards.
    """
    with running_stoker(server) as stoker:
        api = connect(stoker)
        assert stoker.database is not None
        store = Store(stoker.database)
        try:
            fill(store, count, api.project_id)
            return {**_measure_answers(api), **_measure_queries(store, count, api.project_id)}
        finally:
            store.close()


def _measure_answers(api: Api) -> Mapping[str, Any]:
    """Return the duration of each answer, the second time, and the number of entries in it."""
    first = api("GET", "/servers?limit=1000")["servers"]
    trigger = {"config_id": api.create_config(), "labels": {"cell": "7"}}
    calls: Mapping[str, tuple[str, str, Any]] = {
        "first page": ("GET", "/servers?limit=1000", None),
        "second page": ("GET", f"/servers?limit=1000&marker={first[-1]['id']}", None),
        "servers with a label": ("GET", "/servers?labels=cell=7", None),
        "page of a label that a third has": ("GET", "/servers?labels=tier=web&limit=1000", None),
        "page of a selector without label": ("GET", "/servers?selector=not%20tier%3Dweb&limit=1000", None),
        "server by name": ("GET", "/servers/server-5000", None),
        "trigger by label": ("POST", "/software_triggers", trigger),
    }
    measured = {}
    for name, (verb, path, body) in calls.items():
        for _ in range(2):
            begun = time.perf_counter()
            (content,) = api(verb, path, body).values()
            seconds = time.perf_counter() - begun
        measured[f"answer: {name}"] = {"ms": round(seconds * 1000, 1), "rows": len(content)}
    return measured


def _measure_queries(store: Store, count: int, project_id: str) -> Mapping[str, Any]:
    results: dict[str, Any] = {}
    for name, (query, values) in queries(count, project_id).items():
        begun = time.perf_counter()
        with store.read() as tx:
            found = len(list(tx.fetch_all(query, values)))
        milliseconds = round((time.perf_counter() - begun) * 1000, 1)
        results[name] = {"ms": milliseconds, "rows": found, "plan": explain(store, query, values)}
    for name, selector in (("selector with its servers", "cell=7 and tier=web"), ("all without label", "not tier=web")):
        results[name] = _time(
            lambda selector=selector: _read(
                store, lambda tx: server_lists.find_by_selector(tx, project_id, parse(selector))
            )
        )
    results["figures of the site"] = _time(
        lambda: _read(store, lambda tx: site.read_figures(tx, timedelta(minutes=1))).servers
    )
    results["sizes of tables"] = _time(lambda: _read(store, site.read_sizes).tables)
    return results


def _read(store: Store, do: Any) -> Any:
    with store.read() as tx:
        return do(tx)


def _time(do: Any) -> Mapping[str, Any]:
    begun = time.perf_counter()
    result = do()
    return {"ms": round((time.perf_counter() - begun) * 1000, 1), "rows": len(result)}
