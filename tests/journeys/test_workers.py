"""Several worker processes on one port: kill -9 of any of them loses nothing that was acknowledged."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest
from bench.swarm import Faults, Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from support import databases, forked
from support.server import served

SERVERS = 60


@pytest.fixture
def workers(tmp_path, postgresql_server):
    with (
        databases.postgresql_url(postgresql_server) as url,
        served(tmp_path, "--workers", "3", database=url) as stoker,
    ):
        yield stoker


def children(stoker):
    """The ids of the worker processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(entry.joinpath("stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if parent == stoker.process.pid:
                found.append(int(entry.name))
    return sorted(found)


class Client:
    """Calls the server again whenever the worker that has the connection is killed."""

    def __init__(self, stoker):
        self.stoker = stoker
        #: The deployments whose creation was acknowledged.
        self.acknowledged = []
        self.stop = threading.Event()

    def __call__(self, verb, path, body=None):
        ask = self.stoker.request if path.startswith("/agent") else self.stoker.heat
        while True:
            with contextlib.suppress(OSError):
                answer = ask(verb, path, body)
                if answer.status < 500:
                    return answer.body

    def create_deployments(self, config_id):
        body = {"config_id": config_id, "server_id": "nobody", "action": "CREATE", "status": "COMPLETE"}
        while not self.stop.is_set():
            with contextlib.suppress(OSError):  # not acknowledged
                answer = self.stoker.heat("POST", "/software_deployments", body)
                if answer.status < 300:
                    self.acknowledged.append(answer.body["software_deployment"]["id"])


def test_nothing_acknowledged_is_lost_when_workers_are_killed(workers):
    stoker, call = workers, Client(workers)
    stoker.until(lambda: len(children(stoker)) == 3)
    config = call("POST", "/software_configs", {"name": "c", "group": "script", "config": "true"})["software_config"]
    servers = enroll_servers(call, [f"s{i}" for i in range(SERVERS)])
    keys = [server["key"] for server in servers.values()]
    swarm = Swarm(Endpoint("127.0.0.1", stoker.port), keys, Faults(duration=0.02))
    body = {"config_id": config["id"], "action": "BACKUP", "servers": list(servers), "max_concurrent": 20}
    trigger = call("POST", "/software_triggers", body)["software_trigger"]
    killed = []

    def kill_twice():
        for share in (SERVERS // 4, SERVERS // 2):
            stoker.until(lambda share=share: sum(swarm.begun.values()) >= share, 120)
            victim = children(stoker)[len(killed)]
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)
            stoker.until(lambda victim=victim: victim not in children(stoker) and len(children(stoker)) == 3)

    threads = [threading.Thread(target=call.create_deployments, args=(config["id"],)) for _ in range(3)]
    killer = threading.Thread(target=kill_twice)
    for thread in (*threads, killer):
        thread.start()

    def has_ended():
        shown = call("GET", f"/software_triggers/{trigger['id']}")["software_trigger"]
        return not killer.is_alive() and shown["status"] != "IN_PROGRESS"

    try:
        asyncio.run(swarm.run(has_ended))
    finally:
        call.stop.set()
        for thread in (*threads, killer):
            thread.join()
    ended = call("GET", f"/software_triggers/{trigger['id']}")["software_trigger"]
    assert (ended["status"], ended["complete"]) == ("COMPLETE", SERVERS)
    assert set(swarm.begun.values()) == {1}
    stored = {each["id"] for each in call("GET", "/software_deployments")["software_deployments"]}
    assert call.acknowledged
    assert set(call.acknowledged) <= stored

    # One log, with the number of each worker, and an orderly end of all processes.
    log = stoker.state_dir.joinpath("logs", "stoker.log").read_text()
    assert log.count('"event": "worker.ended"') == 2
    pids = children(stoker)
    assert stoker.stop() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    stopped = stoker.state_dir.joinpath("logs", "stoker.log").read_text().removeprefix(log)
    assert all(f'"worker": {number}' in stopped for number in (1, 2, 3))


def test_workers_end_with_their_supervisor(workers):
    workers.until(lambda: len(children(workers)) == 3)
    pids = children(workers)
    assert workers.login().status == 201
    workers.kill9()
    workers.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--workers", "2"), "workers must be 1 on SQLite"),
        (("--workers", "0"), "workers must be from 1 to 256"),
        (("--workers", "2", "--local-servers-unsafe", "--database", "postgresql://h/d"), "with local_servers_unsafe"),
    ],
)
def test_workers_are_refused(tmp_path, flags, words):
    done = forked.run(["serve", "--state-dir", str(tmp_path / "state"), *flags], dict(os.environ), timeout=60)
    assert done.returncode == 1
    assert words in done.stderr
    assert not (tmp_path / "state").exists()


def test_more_connections_than_the_server_permits_are_refused(tmp_path, postgresql_server):
    with databases.postgresql_url(postgresql_server) as url:
        flags = ["--workers", "200", "--database-connections", "50", "--database", url, "--no-clouds-yaml"]
        done = forked.run(["serve", "--state-dir", str(tmp_path / "state"), *flags], dict(os.environ), timeout=60)
    assert done.returncode == 1
    assert "the settings require 10000 connections (workers times database_connections)" in done.stderr
