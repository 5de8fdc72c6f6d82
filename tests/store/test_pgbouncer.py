"""Several processes of Stoker behind a real pgbouncer in transaction mode."""

from __future__ import annotations

import asyncio
import json
import os

import psycopg
import pytest
from bench.swarm import Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from stoker.store.notifier import ALL
from stoker.store.open import Store
from stoker.store.postgresql import check_pooler
from support import forked
from support.notifications import Notified
from support.own_postgresql import own_postgresql
from support.pgbouncer import pgbouncer
from support.server import served
from support.templates import config, define, deployment, template

pytestmark = pytest.mark.slow

SERVERS = 20


@pytest.fixture(scope="module")
def postgresql():
    with own_postgresql() as server:
        yield server


@pytest.fixture(scope="module")
def pooled_url(postgresql):
    with pgbouncer(postgresql) as url:
        yield url


def test_workers_behind_a_transaction_pooler(tmp_path, postgresql, pooled_url):
    """Sessions change with each transaction; notifications, locks and repeated statements work."""
    flags = ("--workers", "2", "--database-direct-url", postgresql.url)
    with served(tmp_path, *flags, database=pooled_url) as stoker:

        def call(verb, path, body=None):
            answer = (stoker.request if path.startswith("/agent") else stoker.heat)(verb, path, body)
            assert answer.status < 300, answer.raw
            return answer.body

        servers = enroll_servers(call, [f"s{number}" for number in range(SERVERS)])
        swarm = Swarm(Endpoint("127.0.0.1", stoker.port), [server["key"] for server in servers.values()])
        body = {"name": "c", "group": "script", "config": "true"}
        config_id = call("POST", "/software_configs", body)["software_config"]["id"]

        def start_trigger():
            body = {"config_id": config_id, "action": "BACKUP", "servers": list(servers)}
            return call("POST", "/software_triggers", body)["software_trigger"]["id"]

        def show(id):
            return call("GET", f"/software_triggers/{id}")["software_trigger"]

        def start_stack():
            resources = {
                "web": define("OS::Heat::DeployedServer", name="web"),
                "config": config("true"),
                "waits": {"type": "OS::Heat::RandomString"},
                "runs": deployment(server="web", signal_transport="NO_SIGNAL"),
            }
            path = tmp_path / "t.json"
            path.write_text(json.dumps(template(resources)))
            stoker.run("stack", "create", "pooled", "-t", str(path), "--wait")

        async def journey():
            async with swarm.agents(), asyncio.timeout(300):
                while swarm.statistics.counts["documents"] < SERVERS:
                    await asyncio.sleep(0.05)
                triggers = [await asyncio.to_thread(start_trigger) for _ in range(5)]
                await asyncio.to_thread(start_stack)
                for id in triggers:
                    while (shown := await asyncio.to_thread(show, id))["status"] == "IN_PROGRESS":
                        await asyncio.sleep(0.05)
                    assert (shown["status"], shown["complete"]) == ("COMPLETE", SERVERS)

        asyncio.run(journey())
        assert len(swarm.begun) >= 5 * SERVERS
        assert set(swarm.begun.values()) == {1}
        with psycopg.connect(postgresql.url, autocommit=True) as direct:
            query = "SELECT count(*), count(*) FILTER (WHERE application_name LIKE 'stoker%') FROM pg_stat_activity"
            query += " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            # Three of the pool; listener and sender of two workers, of which one may only just have started.
            stoker.until(lambda: direct.execute(query).fetchone() == (7, 4))
        stoker.until(lambda: stoker.request("GET", "/healthz").status == 200)
        assert stoker.stop() == 0
        assert '"level": "error"' not in stoker.output


def test_a_pooler_without_a_direct_url_is_refused(tmp_path, postgresql, pooled_url):
    for direct, message in (
        ("", "name PostgreSQL itself in database_direct_url"),
        (pooled_url.replace("127.0.0.1", "localhost"), "database_direct_url leads to a connection pooler, too"),
    ):
        words = ["serve", "--state-dir", str(tmp_path / "state"), "--no-clouds-yaml", "--database", pooled_url]
        words += ["--database-direct-url", direct] if direct else []
        done = forked.run(words, dict(os.environ), timeout=60)
        assert done.returncode == 1
        assert message in done.stderr
    assert not check_pooler(postgresql.url, "")


def test_a_pooler_of_sessions_needs_no_other_url(postgresql):
    """Equal URLs state that each client has a session of its own."""
    with pgbouncer(postgresql, "session") as url:
        assert check_pooler(url, url)
        store = Store(url, direct_url=url)
        notified = Notified(store)
        store.start_listener()
        notified.wait((ALL, 0))
        store.close()
