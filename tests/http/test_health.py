"""GET /healthz: what it reports while a check fails or hangs, and while the database is away."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from contextlib import ExitStack

import psycopg
import pytest

from stoker.http import health
from stoker.http.health import HealthReport
from stoker.model.errors import Unavailable
from stoker.store.open import Store
from support import databases
from support.server import Answer, served

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


def test_an_advisory_check_only_degrades_and_a_fault_is_a_problem_too():
    report = HealthReport({"database": lambda: None, "odd": lambda: {}["missing"]}, {"disk": fail})
    report.refresh()
    assert report.problems().keys() == {"odd"}
    assert "KeyError" in report.problems()["odd"]
    assert report.warnings() == {"disk": "it is away"}


def test_a_check_that_hangs_is_reported_by_the_others_reader(monkeypatch):
    monkeypatch.setattr(health, "_PATIENCE", 0.0)
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
    taken = ExitStack()
    try:
        while store.pool.used < store.pool.size:
            taken.enter_context(store.pool.connection())
        store.check()
    finally:
        taken.close()
        store.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a file system")
def test_a_full_disk_is_reported_before_and_while_writes_fail(tmp_path):
    (disk := tmp_path / "state").mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", str(disk)], check=True)

    def status(health: str, reason: str, code: int = 1) -> bool:
        done = stoker.run("status", "-o", "json", check=False)
        shown = json.loads(done.stdout)
        return done.returncode == code and health in shown["health"] and reason in str(shown.get("warnings"))

    def metrics() -> str:
        return stoker.request("GET", "/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).raw.decode()

    def write(size: int = 100_000) -> Answer:
        return stoker.heat("POST", "/software_configs", {"name": "c", "config": "x" * size})

    try:
        with served(tmp_path, "--metrics-token", METRICS_TOKEN) as stoker:
            assert status("ok", "None", 0)
            filler = disk / "filler"
            with filler.open("wb") as file:
                file.write(b"x" * (shutil.disk_usage(disk).free - 6_000_000))
            stoker.until(lambda: status("degraded", f"disk: the disk of {disk} has "))
            assert write().status == 200
            with filler.open("ab", buffering=0) as file, pytest.raises(OSError, match="No space"):
                while True:
                    file.write(b"x" * 4096)
            stoker.until(lambda: write().status == 503)
            # Smaller ones, such as that of a login, would otherwise succeed in what is left of the write-ahead log.
            stoker.until(lambda: write(1).status == 503)
            stoker.until(lambda: status("writes: cannot write to the database: database or disk is full", ""))
            stoker.until(lambda: re.search(r"\nstoker_healthy\{.*\} 0.0\n", metrics()) is not None)
            assert re.search(rf'\nstoker_disk_free_bytes\{{path="{disk}".*\}} 0.0\n', metrics())
            assert '"check": "writes", "reason": "cannot write to the database: ' in stoker.output
            filler.unlink()
            stoker.until(lambda: status("ok", "None", 0))
            assert write().status == 200
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_healthz_is_503_while_the_database_is_away(tmp_path, postgresql_server):
    flags = ("--metrics-token", METRICS_TOKEN)
    with databases.postgresql_url(postgresql_server) as url, served(tmp_path, *flags, database=url) as stoker:
        name = databases.name_of(url)
        with psycopg.connect(postgresql_server, autocommit=True) as connection:
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            stoker.until(lambda: stoker.request("GET", "/healthz").status == 503)
            answer = stoker.request("GET", "/healthz")
            assert "database: cannot read from the database" in answer.body["error"]["message"]
            assert answer.headers["Retry-After"]
            metrics = stoker.request("GET", "/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
            assert b"stoker_healthy{" in metrics.raw
            assert b"stoker_agents{" not in metrics.raw, "these figures need the database"
            connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        stoker.until(lambda: stoker.request("GET", "/healthz").status == 200)
