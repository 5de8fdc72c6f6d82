"""
Measure one trigger for all agents of a fleet: the CPU per run, and whether it depends on the number of agents.

    python -m bench.fleet --agents 2000 --agents 10000 sqlite postgresql://user:password@127.0.0.1/postgres

Each case starts a new Stoker, enrolls its servers, and connects simulated agents (``bench.swarm``) in another process.
The figures begin with the request for the trigger, and end when all results are stored and all agents hold a poll
again. For PostgreSQL, a new database is created on the server and dropped afterwards; the CPU of the server's
processes is a figure of its own if they run on this machine. Nothing else should use the server meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from bench.__main__ import stoker
from bench.cases import Target
from bench.measure import cpu_seconds, pss_mb
from bench.swarm import Faults
from bench.swarm.process import Share, run_share
from bench.swarm.statistics import Statistics

#: Seconds between two reports of the swarm, and between two requests for the trigger's status.
_INTERVAL = 0.25
#: Seconds in which the agents connect, per thousand of them.
_CONNECTING = 1.0
#: Seconds without requests before the trigger.
_SETTLING = 3.0


@dataclass
class Fleet:
    """The process with the simulated agents, and what it has reported so far."""

    pipe: Pipe
    statistics: Statistics
    polling: int = 0

    def read(self) -> None:
        """Read the reports that have arrived. Raises RuntimeError if the swarm cannot run."""
        while self.pipe.poll():
            message: Any = self.pipe.recv()
            if isinstance(message, str):
                raise RuntimeError(message)  # noqa: TRY004 — not a defect of this program
            self.statistics.add(message["statistics"])
            self.polling = message["polling"]

    def wait_for_polls(self, count: int) -> None:
        """Wait until ``count`` agents hold a poll."""
        while self.polling < count:
            time.sleep(_INTERVAL / 2)
            self.read()


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser("bench.fleet", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("databases", nargs="+", help="sqlite, or the URL of a PostgreSQL server")
    parser.add_argument("--agents", type=int, action="append", required=True, help="size of a fleet; may be repeated")
    parser.add_argument("--rounds", type=int, default=1, help="how often all cases run, in turns")
    parser.add_argument("--duration", type=float, default=0.0, help="seconds that each simulated run takes")
    args = parser.parse_args()
    for _ in range(args.rounds):
        for database in args.databases:
            for agents in args.agents:
                kind = database.partition(":")[0]
                print(json.dumps({"database": kind, **measure(database, agents, args.duration)}), flush=True)


def measure(database: str, agents: int, duration: float = 0.0) -> dict[str, float]:
    """Return the figures of one trigger for ``agents`` agents."""
    limit = ("--max-connections-per-address", str(agents + 100))
    with (
        _database(database) as (url, postgres),
        stoker(url, *limit) as target,
        _fleet(target, agents, duration) as fleet,
    ):
        fleet.wait_for_polls(agents)
        time.sleep(_SETTLING)
        fleet.read()
        fleet.statistics = Statistics()
        cpu, database_cpu = cpu_seconds(target.pids), cpu_seconds(postgres, with_ended=True)
        started, stored = _run_trigger(target)
        fleet.polling = 0
        fleet.read()
        fleet.wait_for_polls(agents)
        used, database_used = cpu_seconds(target.pids) - cpu, cpu_seconds(postgres, with_ended=True) - database_cpu
        assert fleet.statistics.counts["results"] == agents, fleet.statistics.report()
        return {
            "agents": agents,
            "cpu_ms_per_run": round(used * 1000 / agents, 3),
            **({"database_cpu_ms_per_run": round(database_used * 1000 / agents, 3)} if postgres else {}),
            "started_s": round(started, 2),
            "stored_s": round(stored, 2),
            "polls_per_run": round(fleet.statistics.counts["polls"] / agents, 2),
            "errors": sum(count for name, count in fleet.statistics.counts.items() if name.startswith("error")),
            "mb": round(pss_mb(target.pids)),
        }


def _run_trigger(target: Target) -> tuple[float, float]:
    """Run a script on all servers. Return the seconds until all runs had started, and until all results were stored."""
    config = {"name": "fleet", "group": "script", "config": "#!/bin/sh\n"}
    config_id = target.api("POST", "/software_configs", config)["software_config"]["id"]
    begun, started = time.perf_counter(), 0.0
    target.api("POST", "/software_triggers", {"config_id": config_id, "action": "BENCH", "labels": {"fleet": "1"}})
    while True:
        [trigger] = target.api("GET", "/software_triggers?limit=1")["software_triggers"]
        passed = time.perf_counter() - begun
        if not started and not trigger["queued"]:
            started = passed
        if trigger["status"] != "IN_PROGRESS":
            assert trigger["status"] == "COMPLETE", trigger["status_reason"]
            return started, passed
        time.sleep(_INTERVAL)


@contextlib.contextmanager
def _fleet(target: Target, agents: int, duration: float) -> Iterator[Fleet]:
    """Enroll and connect agents, in a process that ends with the block."""
    enrollment = target.api("POST", "/enrollments", {"limit": agents, "labels": {"fleet": "1"}})["enrollment"]
    names = [f"fleet-{number}" for number in range(agents)]
    share = Share(
        url=f"{target.api.base.scheme}://{target.api.base.netloc}",
        ca_file=None,
        token=enrollment["token"],
        keys=dict.fromkeys(names),
        first_index=0,
        faults=Faults(duration=duration),
        start_within=_CONNECTING * agents / 1000,
        interval=_INTERVAL,
    )
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=run_share, args=(share, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        yield Fleet(ours, Statistics())
    finally:
        process.kill()
        process.join()


@contextlib.contextmanager
def _database(database: str) -> Iterator[tuple[str | None, tuple[int, ...]]]:
    """Yield the URL of a new database (None: SQLite), and the id of the server's first process if it runs here."""
    if database == "sqlite":
        yield None, ()
        return
    name = f"stoker_fleet_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        assert row is not None
        try:
            base, _, query = database.partition("?")
            yield f"{base.rpartition('/')[0]}/{name}{'?' if query else ''}{query}", _parent(row[0])
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _parent(pid: int) -> tuple[int, ...]:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # the server is on another machine
        return ()
    return (int(stat.rsplit(")", 1)[1].split()[1]),) if "(postgres" in stat else ()


if __name__ == "__main__":
    main()
