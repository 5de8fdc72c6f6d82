"""How many connections a process opens, and what happens when all of them are busy."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from stoker.model.errors import Unavailable
from stoker.store import connection, postgresql
from stoker.store.open import CONNECTIONS, Store
from support import databases, query
from support.server import served

pytestmark = pytest.mark.slow


def test_the_error_of_a_missing_connection_names_the_busy_ones(database_url, monkeypatch):
    monkeypatch.setattr(connection, "TIMEOUT", 0.2)
    store = Store(database_url, postgresql.FIXED_CONNECTIONS + 2)
    release = threading.Event()
    taken = threading.Semaphore(0)

    def read() -> None:
        with store.read():
            taken.release()
            assert release.wait(60)

    readers = [threading.Thread(target=read) for _ in range(store.pool.size)]
    try:
        for reader in readers:
            reader.start()
        for _ in readers:
            assert taken.acquire(timeout=60)
        with pytest.raises(Unavailable, match="busy"), store.read():
            pass
        if store.dialect == "postgresql":  # SQLite's writer waits for no reader
            with pytest.raises(Unavailable, match="busy"):
                store.write(lambda tx: query.scalar(tx, "SELECT 1"))
    finally:
        release.set()
        for reader in readers:
            reader.join(60)
    with store.read() as tx:
        assert query.scalar(tx, "SELECT 1") == 1
    store.close()


def test_a_server_under_load_stays_within_its_connections(tmp_path, postgresql_server):
    """Three processes must fit into a PostgreSQL of default settings, with room for others."""
    with databases.postgresql_url(postgresql_server) as url, served(tmp_path, database=url) as stoker:
        name = databases.name_of(url)
        most, end = 0, threading.Event()

        def count() -> None:
            nonlocal most
            text = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND backend_type = 'client backend'"
            with psycopg.connect(postgresql_server, autocommit=True) as connection:
                while not end.is_set():
                    ((number,),) = connection.execute(text, [name])
                    most = max(most, number)

        counter = threading.Thread(target=count)
        counter.start()
        path, headers = f"/v1/{stoker.project}/software_configs", {"X-Auth-Token": stoker.token}

        def create(n: int) -> int:
            body = {"name": f"c{n}", "group": "script", "config": "true"}
            return stoker.request("POST", path, body, headers=headers).status

        with ThreadPoolExecutor(40) as clients:
            statuses = set(clients.map(create, range(400)))
        end.set()
        counter.join(60)
    assert statuses == {200}
    assert 5 < most <= CONNECTIONS, most
