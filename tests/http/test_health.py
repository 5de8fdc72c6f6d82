"""GET /healthz: what it reports while a check fails or hangs, and while the database is away."""

from __future__ import annotations

import threading

import pytest
import sqlalchemy as sa

from stoker.http import health_report
from stoker.http.health_report import HealthReport
from stoker.model.errors import Unavailable
from stoker.store.open import Store
from stoker.store.postgresql import driver_url
from support import databases
from support.server import served

pytestmark = pytest.mark.slow

METRICS_TOKEN = "a-token-for-monitoring-that-nobody-guesses"


def fail() -> None:
    raise Unavailable("it is away")


def test_a_failed_check_is_reported_by_name_until_it_passes():
    failing = threading.Event()
    failing.set()
    report = HealthReport({"good": lambda: None, "database": lambda: fail() if failing.is_set() else None})
    assert report.problems() == {}
    report.refresh()
    assert report.problems() == {"database": "it is away"}
    failing.clear()
    report.refresh()
    assert report.problems() == {}


def test_a_check_with_a_fault_is_a_problem_too():
    report = HealthReport({"odd": lambda: {}["missing"]})
    report.refresh()
    assert "KeyError" in report.problems()["odd"]


def test_a_check_that_hangs_is_reported_by_the_others_reader(monkeypatch):
    monkeypatch.setattr(health_report, "_PATIENCE", 0.0)
    begun, end = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        end.wait(60)

    report = HealthReport({"database": hang})
    report.start()
    try:
        assert begun.wait(60)
        assert report.problems()["database"].startswith("no answer for")
    finally:
        end.set()
        report.stop()


def test_a_pool_without_a_free_connection_is_not_a_lost_database(database_url):
    store = Store(database_url)
    taken = []
    try:
        while store.engine.pool.checkedout() < store.engine.pool.size() + store.engine.pool._max_overflow:
            taken.append(store.engine.connect())
        store.probe.check()
    finally:
        for connection in taken:
            connection.close()
        store.close()


def test_the_probe_of_a_database_that_is_away_says_so():
    store = Store("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(Unavailable, match="cannot read from the database"):
        store.probe.check()
    store.close()


def test_healthz_is_503_while_the_database_is_away(tmp_path, postgresql_server):
    flags = ("--metrics-token", METRICS_TOKEN)
    with databases.postgresql_url(postgresql_server) as url, served(tmp_path, *flags, database=url) as stoker:
        name = sa.make_url(url).database
        admin = sa.create_engine(driver_url(postgresql_server), isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            connection.execute(
                sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :n"), {"n": name}
            )
            stoker.until(lambda: stoker.request("GET", "/healthz").status == 503)
            answer = stoker.request("GET", "/healthz")
            assert "database: cannot read from the database" in answer.body["error"]["message"]
            assert answer.headers["Retry-After"]
            metrics = stoker.request("GET", "/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
            assert b"stoker_healthy{" in metrics.raw
            assert b"stoker_agents{" not in metrics.raw, "these figures need the database"
            connection.exec_driver_sql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        admin.dispose()
        stoker.until(lambda: stoker.request("GET", "/healthz").status == 200)
