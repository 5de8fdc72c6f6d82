"""Several worker processes on one port, under a supervisor."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from support import databases, forked
from support.agent_protocol import deploy, enroll, spoken_agent
from support.processes import list_children
from support.server import Served, served


@pytest.fixture
def workers(tmp_path, postgresql_server):
    with (
        databases.postgresql_url(postgresql_server) as url,
        served(tmp_path, "--workers", "3", database=url) as stoker,
    ):
        yield stoker


def read_metrics(stoker: Served) -> dict[str, Metric]:
    answer = stoker.request("GET", "/metrics", headers={"X-Auth-Token": stoker.token})
    assert answer.status == 200, answer.raw
    return {family.name: family for family in text_string_to_metric_families(answer.raw.decode())}


def add_up(family: Metric, **labels: str) -> float:
    """The sum over all workers."""
    return sum(sample.value for sample in family.samples if labels.items() <= sample.labels.items())


def list_workers(found: dict[str, Metric]) -> list[str]:
    return sorted(sample.labels["process"] for sample in found["stoker_process_info"].samples)


def check_metrics(stoker: Served) -> None:
    """Whichever worker answers, each answer has the counters, histograms and gauges of all of them."""
    logins = {"route": "/identity/v3/auth/tokens", "method": "POST", "status": "201"}
    before = add_up(read_metrics(stoker)["stoker_http_requests"], **logins)
    for number in range(1, 7):
        assert stoker.login().status == 201
        found = read_metrics(stoker)
        assert list_workers(found) == ["1", "2", "3"]
        assert add_up(found["stoker_http_requests"], **logins) == before + number
    commits = [sample for sample in found["stoker_commit_seconds"].samples if sample.name.endswith("_count")]
    assert sorted(sample.labels["process"] for sample in commits) == ["1", "2", "3"]
    assert len(found["process_cpu_seconds"].samples) == 3
    assert [sample.labels for sample in found["stoker_database_bytes"].samples] == [{}]

    agent = spoken_agent(stoker)
    etag = agent.document().headers["ETag"]
    poll = threading.Thread(target=agent.document, kwargs={"wait": 60, "etag": etag})
    poll.start()
    stoker.until(lambda: add_up(read_metrics(stoker)["stoker_held_polls"]) == 1)
    deploy(stoker, agent.id)  # answers the poll
    poll.join(60)
    assert not poll.is_alive()


def have_all_decided(stoker: Served, since: str) -> bool:
    """Whether each of the workers has logged a decision since then. Each call requests one, from any worker."""
    enroll(stoker)
    added = stoker.output.removeprefix(since)
    return all(f'"event": "rules.decision", "worker": {number}' in added for number in (1, 2, 3))


def test_metrics_of_all_workers_and_a_killed_one_is_restarted_and_all_end_in_order(workers):
    """``test_faults`` kills workers under load."""
    workers.until(lambda: list_workers(read_metrics(workers)) == ["1", "2", "3"])
    check_metrics(workers)
    victim = list_children(workers.process.pid)[0]
    os.kill(victim, signal.SIGKILL)
    workers.until(lambda: victim not in (found := list_children(workers.process.pid)) and len(found) == 3)
    workers.until(lambda: list_workers(read_metrics(workers)) == ["1", "2", "3"])
    before = workers.output
    workers.until(lambda: have_all_decided(workers, before))  # before that, a worker that starts stops without a word

    # One log, with the number of each worker, and an orderly end of all processes.
    log = workers.output
    assert log.count('"event": "worker.ended"') == 1
    pids = list_children(workers.process.pid)
    assert workers.stop() == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    stopped = workers.output.removeprefix(log)
    assert all(f'"worker": {number}' in stopped for number in (1, 2, 3))
    assert '"level": "error"' not in stopped


def test_workers_end_with_their_supervisor(workers):
    workers.until(lambda: len(list_children(workers.process.pid)) == 3)
    pids = list_children(workers.process.pid)
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
