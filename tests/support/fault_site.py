"""A site under load whose parts fail: processes of Stoker, PostgreSQL, simulated and real agents, and clients."""

from __future__ import annotations

import itertools
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from support.agents import OwnAgent
from support.clock import FakeTime
from support.disks import full_disk, slow_disk
from support.faulty_line import FaultyLine
from support.own_postgresql import OwnPostgresql
from support.processes import list_children
from support.server import Served
from support.site_report import SiteReport

_PATIENCE = 240
#: Deployments of one client that wait for agents at most.
_OUTSTANDING = 30
_numbers = itertools.count()


@dataclass
class Load:
    """Clients that create deployments and triggers as long as the site runs, and remember what was acknowledged."""

    #: Processes on one database; clients choose one for each deployment.
    stokers: list[Served]
    config_id: str
    #: Each deployment is for one of these; triggers are for all simulated servers.
    servers: list[str]
    simulated: list[str]
    #: The acknowledged deployments, each with the name that its script records.
    deployments: dict[str, str] = field(default_factory=dict)
    triggers: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        """Start the clients."""
        self._threads = [threading.Thread(target=work) for work in (self._deploy, self._deploy, self._trigger)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the clients."""
        self._stopping.set()
        for thread in self._threads:
            thread.join(_PATIENCE)
            assert not thread.is_alive()

    def call(self, verb: str, path: str, body: Any = None) -> Any:
        """Call Heat's API until it answers."""
        until = time.monotonic() + _PATIENCE
        while True:
            if (answer := self._attempt(verb, path, body)) is not None:
                return answer
            assert time.monotonic() < until, self.errors
            time.sleep(0.1)

    def _attempt(self, verb: str, path: str, body: Any) -> Any:
        """Return the body of the answer, or None if the request is not acknowledged."""
        try:
            answer = random.choice(self.stokers).heat(verb, path, body)
        except OSError as error:
            self.errors[type(error).__name__] += 1
            return None
        if answer.status >= 500:
            self.errors[f"{answer.status} {answer.raw[:200]!r}"] += 1
            return None
        assert answer.status < 300, answer.raw
        return answer.body

    def _deploy(self) -> None:
        while not self._stopping.wait(0.03):
            recent = list(self.deployments)[-_OUTSTANDING:]
            if len(recent) == _OUTSTANDING and self._is_pending(recent[0]):
                self._stopping.wait(0.2)
                continue
            self.deploy()

    def deploy(self) -> None:
        """Create a deployment, and remember it if the request is acknowledged."""
        name = f"run-{next(_numbers)}"  # of its own for each attempt, because one that got no answer may exist
        body = {
            "config_id": self.config_id,
            "server_id": random.choice(self.servers),
            "action": "CREATE",
            "input_values": {"me": name},
            "signal_transport": "STOKER_SIGNAL",
        }
        made = self._attempt("POST", "/software_deployments", body)
        if made is not None:
            self.deployments[made["software_deployment"]["id"]] = name

    def _is_pending(self, id: str) -> bool:
        shown = self._attempt("GET", f"/software_deployments/{id}", None)
        return shown is None or shown["software_deployment"]["status"] == "IN_PROGRESS"

    def _trigger(self) -> None:
        while not self._stopping.wait(0.1):
            body = {"config_id": self.config_id, "action": "BACKUP", "servers": self.simulated, "max_concurrent": 20}
            made = self._attempt("POST", "/software_triggers", body)
            if made is None:
                continue
            self.triggers.append(made["software_trigger"]["id"])
            while not self._stopping.wait(0.2):
                shown = self._attempt("GET", f"/software_triggers/{self.triggers[-1]}", None)
                if shown is not None and shown["software_trigger"]["status"] != "IN_PROGRESS":
                    break


@dataclass
class FaultSite:
    """``progress`` returns the number of runs that agents have begun."""

    stoker: Served
    postgresql: OwnPostgresql
    #: Between Stoker and PostgreSQL, between simulated agents and Stoker, and between real agents and Stoker.
    database_line: FaultyLine
    agent_lines: tuple[FaultyLine, FaultyLine]
    #: A real agent whose state is on a small disk.
    agent: OwnAgent
    #: The clock of the agent, and of a process of its own on the same database.
    clock: FakeTime
    progress: Callable[[], int]
    report: SiteReport

    def faults(self) -> Iterator[Callable[[], None]]:
        """Yield each fault once, in an order in which slow recoveries overlap with the next faults."""
        yield from (self.hold_agents, self.hold_database, self.kill_worker, self.cut_database)
        yield from (self.restart_database, self.advance_clock, self.kill_database, self.cut_agents)
        yield from (self.kill_agent, self.set_clock_back, self.slow_down_database, self.slow_down_disks, self.fill_disk)
        yield from (self.fill_disk_of_agent, self.lose_database, self.kill_supervisor)

    def await_progress(self, runs: int) -> None:
        """Wait until agents have begun some more runs, as long as they begin any."""
        progress, until = self.progress(), time.monotonic() + _PATIENCE
        target = progress + runs
        while progress < target:
            if (now := self.progress()) > progress:
                progress, until = now, time.monotonic() + _PATIENCE
            if time.monotonic() > until:
                raise AssertionError(f"{target - progress} of {runs} runs are missing:\n{self.report.write()}")
            time.sleep(0.05)

    def kill_worker(self) -> None:
        """Kill -9 one of the workers."""
        assert self.stoker.process is not None
        victim = random.choice(list_children(self.stoker.process.pid))
        os.kill(victim, signal.SIGKILL)

    def kill_supervisor(self) -> None:
        """Kill -9 the supervisor, and start it again."""
        self.stoker.kill9()
        self.stoker.restart()

    def restart_database(self) -> None:
        """End PostgreSQL with all its connections, and start it again."""
        self.postgresql.stop()
        self.postgresql.start()

    def kill_database(self) -> None:
        """Kill -9 PostgreSQL, and start it again."""
        self.postgresql.kill()
        self.postgresql.start()

    def cut_database(self) -> None:
        """Reset all connections to PostgreSQL."""
        self.database_line.cut()

    def lose_database(self) -> None:
        """Take PostgreSQL away for some seconds."""
        self.database_line.go()
        time.sleep(3)
        self.database_line.come()

    def hold_database(self) -> None:
        """Leave all connections to PostgreSQL half-open."""
        self.database_line.hold()
        self.await_progress(20)
        self.database_line.cut_held()

    def slow_down_database(self) -> None:
        """Delay each answer of PostgreSQL, as a distant or busy server does."""
        self.database_line.delay(0.05)
        self.await_progress(3)
        self.database_line.delay(0)

    def slow_down_disks(self) -> None:
        """Delay each fsync of PostgreSQL and of the agent."""
        assert self.agent.process is not None
        with slow_disk([*self.postgresql.pids(), self.agent.process.pid], 0.2):
            self.await_progress(20)

    def fill_disk(self) -> None:
        """Fill the disk of PostgreSQL for some seconds. PostgreSQL may end."""
        with full_disk(self.postgresql.disk):
            time.sleep(3)
        self.postgresql.start()

    def fill_disk_of_agent(self) -> None:
        """Fill the disk with the state of the agent for some seconds."""
        with full_disk(self.agent.root / "state"):
            time.sleep(3)

    def kill_agent(self) -> None:
        """Kill -9 the agent, and start it again."""
        self.agent.end(signal.SIGKILL)
        self.agent.start()

    def cut_agents(self) -> None:
        """Reset all connections of agents."""
        for line in self.agent_lines:
            line.cut()

    def hold_agents(self) -> None:
        """Leave all connections of agents half-open."""
        for line in self.agent_lines:
            line.hold()
        self.await_progress(20)
        for line in self.agent_lines:
            line.cut_held()

    def advance_clock(self) -> None:
        """Let the clock of one process be an hour ahead."""
        self.clock.move(timedelta(hours=1))

    def set_clock_back(self) -> None:
        """Let the clock of one process be an hour behind."""
        self.clock.move(timedelta(hours=-1))
