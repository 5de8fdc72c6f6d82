"""
Faults of every part of a site under load: nothing acknowledged is lost, nothing runs twice, and everything ends.

STOKER_TEST_FAULTS is the number of rounds; each round has every fault once. `make faults` runs several rounds with more
agents; one round in the other tests has the faults of ``BRIEF`` only.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from bench.swarm import Swarm, enroll_servers
from bench.swarm.connection import Endpoint

from support import waiting
from support.agents import OwnAgent, enrolled_agent, own_agent
from support.clock import FakeTime
from support.disks import small_disk
from support.fault_site import FaultSite, Load
from support.faulty_line import faulty_line
from support.own_postgresql import own_postgresql
from support.server import SHARED_SECRET, Served, served
from support.site_report import SiteReport

ROUNDS = int(os.environ.get("STOKER_TEST_FAULTS", "0"))
SIMULATED = 300 if ROUNDS else 30
#: Runs between two faults.
RUNS = 300 if ROUNDS else 60
BRIEF = {
    "kill_worker",
    "kill_agent",
    "cut_agents",
    "cut_database",
    "restart_database",
    "advance_clock",
    "set_clock_back",
    "slow_down_disks",
    "fill_disk_of_agent",
}
SCRIPT = """#!/bin/sh
echo "$me" >> $WORK/runs
echo "output of $me"
printf "%s" "$me" > $heat_outputs_path.copy
"""
WORKERS, CONNECTIONS = 3, 10
#: The size of the disk with the state of an agent.
STATE_MIB = 12
#: Reasons of failed runs on an agent that was killed, or whose disk was full, which may also stop the script itself.
REASONS = ("Interrupted", "No space left", "non-zero status code", "could not be begun")


class Agents:
    """The simulated agents, in a thread: most behind a line, some at another process."""

    def __init__(self, keys: list[str], line: int, other: int) -> None:
        split = len(keys) * 5 // 6
        self.swarms = [
            Swarm(Endpoint("127.0.0.1", port), keys[first:end], duration=0.02, wait=5, first_index=first)
            for port, first, end in ((line, 0, split), (other, split, len(keys)))
        ]
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))

    def __enter__(self) -> Agents:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(60)

    async def _run(self) -> None:
        async with self.swarms[0].agents(), self.swarms[1].agents():
            while not self._stopping.is_set():
                await asyncio.sleep(0.1)

    def begun(self) -> int:
        """Return the number of runs that have begun."""
        return sum(swarm.begun.total() for swarm in self.swarms)


@contextmanager
def frail_agent(folder: Path, stoker: Served, url: str, clock: FakeTime) -> Iterator[OwnAgent]:
    """A real agent with a clock of its own, and its state on a small disk."""
    with own_agent(folder) as agent, small_disk(agent.root / "state", STATE_MIB):
        agent.environment = clock.variables
        agent.enroll(stoker, "frail", url)
        agent.start()
        yield agent


@contextmanager
def fault_site(folder: Path) -> Iterator[tuple[FaultSite, Load, Agents, list[OwnAgent]]]:
    with ExitStack() as left:
        postgresql = left.enter_context(own_postgresql(is_small=True))
        clock = FakeTime(folder)
        line = left.enter_context(faulty_line(postgresql.port))
        flags = ("--heartbeat-seconds", "5", *SHARED_SECRET)
        database = postgresql.url_at(line.port)
        folders = [folder / name for name in ("workers", "other")]
        for each in folders:
            each.mkdir()
        stoker = left.enter_context(
            served(folders[0], *flags, "--workers", str(WORKERS), database=database, is_forked=False)
        )
        other = left.enter_context(served(folders[1], *flags, database=database, login_of=stoker, clock=clock))
        agent_line, real_line = (left.enter_context(faulty_line(stoker.port, loss)) for loss in (0, 0.2))

        def call(verb: str, path: str, body: Any = None) -> Any:
            answer = (stoker.request if path.startswith("/agent") else stoker.heat)(verb, path, body)
            assert answer.status < 300, answer.raw
            return answer.body

        body = {"name": "c", "group": "script", "config": SCRIPT, "inputs": [{"name": "me", "default": ""}]}
        body["outputs"] = [{"name": "copy"}]
        config_id = call("POST", "/software_configs", body)["software_config"]["id"]
        servers = enroll_servers(call, [f"s{number}" for number in range(SIMULATED)])
        keys = [server["key"] for server in servers.values()]
        agents = left.enter_context(Agents(keys, agent_line.port, other.port))
        frail = left.enter_context(frail_agent(folder / "frail", stoker, real_line.url, clock))
        real = [frail, left.enter_context(enrolled_agent(folder / "real", stoker, "real", real_line.url))]
        ids = [server["id"] for server in servers.values()]
        # Half of the clients' deployments are for the real agents.
        load = Load([stoker, other], config_id, [*ids, *(agent.spoken.id for agent in real * (len(ids) // 2))], ids)
        report = SiteReport(postgresql.url, {"workers": stoker, "other": other}, agents.swarms, real)
        site = FaultSite(stoker, postgresql, line, (agent_line, real_line), frail, clock, agents.begun, report)
        load.start()
        try:
            yield site, load, agents, real
        finally:
            load.stop()


@pytest.mark.timeout(900 * (1 + ROUNDS))
def test_no_fault_loses_or_repeats_anything(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")  # for the report
    with fault_site(tmp_path) as (site, load, agents, real):
        site.await_progress(RUNS)
        for _ in range(ROUNDS or 1):
            for fault in site.faults():
                if ROUNDS or fault.__name__ in BRIEF:
                    begun = time.monotonic()
                    fault()
                    site.await_progress(RUNS)
                    print(f"{fault.__name__}: {time.monotonic() - begun:.1f} s", flush=True)
        load.stop()
        deployments = check_ends(load, site.report)
        statuses = Counter(deployment["status_reason"][:80] for deployment in deployments)
        print(len(load.deployments), len(load.triggers), agents.begun(), dict(load.errors), statuses, flush=True)
        check_runs(deployments, agents, real)
        check_database(site)
    assert site.stoker.stop() == 0 if site.stoker.process.poll() is None else True


def check_ends(load: Load, report: SiteReport) -> list[dict[str, Any]]:
    """Wait until everything that was acknowledged has ended. Return the deployments."""
    counts = {"complete": SIMULATED, "failed": 0, "cancelled": 0, "running": 0, "queued": 0}

    def end(kind: str, id: str) -> dict[str, Any]:
        shown: dict[str, Any] = {}

        def has_ended() -> bool:
            shown.update(load.call("GET", f"/{kind}s/{id}")[kind])
            return bool(shown["status"] != "IN_PROGRESS")

        waiting.until(has_ended, 240, lambda: f"{shown}\n{report.write()}")
        return shown

    for id in load.triggers:
        trigger = end("software_trigger", id)
        assert {name: trigger[name] for name in ("status", *counts)} == {"status": "COMPLETE", **counts}
    return [end("software_deployment", id) for id in load.deployments]


def check_runs(deployments: list[dict[str, Any]], agents: Agents, real: list[OwnAgent]) -> None:
    """Nothing ran twice, and each deployment on a real agent ran once, or its reason says why it did not end well."""
    for swarm in agents.swarms:
        assert max(swarm.begun.values()) == 1, swarm.begun.most_common(3)
    ran = Counter(line for agent in real for line in agent.lines())
    assert max(ran.values()) == 1, ran.most_common(3)
    failed = []
    for deployment in deployments:
        me, is_real = deployment["input_values"]["me"], deployment["server_id"] in {agent.spoken.id for agent in real}
        if deployment["status"] != "COMPLETE":
            failed.append(deployment)
            assert deployment["server_id"] == real[0].spoken.id, deployment
            assert any(reason in deployment["status_reason"] for reason in REASONS), deployment
        elif is_real:
            assert ran[me] == 1
            assert deployment["output_values"]["copy"] == me
            assert deployment["output_values"]["deploy_stdout"] == f"output of {me}\n"
    assert len(failed) < len(deployments) / 8


QUERIES = {
    "runs of a deployment": "SELECT deployment_id FROM runs",
    "open deployments": "SELECT id FROM deployments WHERE status = 'IN_PROGRESS'",
    "open runs": "SELECT id FROM deployments WHERE ended_at IS NULL",
    "wrong counts": (
        "SELECT t.id FROM triggers t JOIN trigger_targets g ON g.trigger_id = t.id GROUP BY t.id, t.total, t.complete"
        " HAVING t.total <> count(*) OR t.complete <> count(*) FILTER (WHERE g.status = 'COMPLETE')"
    ),
    "running jobs": "SELECT kind, key FROM jobs WHERE state = 'RUNNING'",
    "idle transactions": (
        "SELECT pid, query FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        " AND state_change < now() - interval '2 seconds'"
    ),
}


def check_database(site: FaultSite) -> None:
    """The rows are consistent, and no connection is left over."""
    with psycopg.connect(site.postgresql.url, autocommit=True) as connection:

        def find(query: str) -> list[Any]:
            return connection.execute(query).fetchall()

        for name, query in QUERIES.items():
            until = time.monotonic() + 60  # jobs of killed processes return after their lease
            while rows := find(query):
                assert time.monotonic() < until, (name, len(rows), rows[:3])
                time.sleep(0.2)
        count = (
            "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        assert find(count)[0][0] <= (WORKERS + 1) * CONNECTIONS
