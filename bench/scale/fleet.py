"""The agents of a measurement: a swarm in processes of its own, whose reports a thread collects."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.api import Api
from bench.measure import wait_until
from bench.scale.servers import create_servers
from bench.stoker import connect
from bench.swarm.processes import Share, SwarmFailed, SwarmProcesses
from bench.swarm.statistics import Statistics
from support.server import Served

#: Agents of one process of the swarm: each has a file descriptor, and shares a core with the others.
_AGENTS_PER_PROCESS = 10_000
#: Seconds between two reports.
_INTERVAL = 0.5
#: Agents have ``LABEL`` with this value, by which triggers choose them.
LABEL = "swarm"


@dataclass
class Fleet:
    """Connected agents. ``statistics`` are those since the last ``take``."""

    count: int
    swarm: SwarmProcesses
    polling: int = 0
    failure: str | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._statistics = Statistics()
        threading.Thread(target=self._collect, daemon=True).start()

    def take(self) -> Statistics:
        """Return the statistics since the last call."""
        with self._lock:
            taken, self._statistics = self._statistics, Statistics()
        return taken

    def wait_until_connected(self, seconds: float = 600) -> float:
        """Wait until each agent has an open poll, and return the seconds. Raises SwarmFailed or TimeoutError."""
        return wait_until(self._is_connected, f"polls of {self.count} agents", seconds)

    def _is_connected(self) -> bool:
        if self.failure:
            raise SwarmFailed(self.failure)
        return self.polling == self.count

    def _collect(self) -> None:
        while True:
            try:
                report = self.swarm.report()
            except (SwarmFailed, OSError) as failure:
                self.failure = str(failure)
                return
            with self._lock:
                self._statistics.add(report.statistics)
            self.polling = report.polling


@contextlib.contextmanager
def connected_fleet(stoker: Served, api: Api, count: int, *, start_within: float = 0.0) -> Iterator[Fleet]:
    """Create ``count`` servers, run their agents, and yield when each has an open poll."""
    names = [f"swarm-{number}" for number in range(count)]
    keys = create_servers(stoker, api.project_id, names, {LABEL: "1"})
    processes = -(-count // _AGENTS_PER_PROCESS)
    shares = [
        Share(
            url=stoker.url,
            ca_file=None,
            token="",
            keys={name: keys[name] for name in names[first::processes]},
            first_index=first * _AGENTS_PER_PROCESS,
            start_within=start_within,
            interval=_INTERVAL,
        )
        for first in range(processes)
    ]
    with SwarmProcesses.running(shares) as swarm:
        fleet = Fleet(count, swarm)
        fleet.wait_until_connected()
        yield fleet


class Load:
    """A steady load: a trigger of ``size`` random agents every ``pause`` seconds, from a thread."""

    def __init__(self, stoker: Served, size: int, pause: float) -> None:
        self._api = connect(stoker)
        self._pause = pause
        self._size = size
        self._stopping = threading.Event()
        self._config = self._api.create_config()
        self._servers = _server_ids(self._api)
        #: The triggers whose creation was acknowledged, the requests that were not, and their seconds.
        self.triggers: list[str] = []
        self.failures = 0
        self.statistics = Statistics()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    @property
    def runs(self) -> int:
        """The number of runs of all acknowledged triggers."""
        return len(self.triggers) * self._size

    def take(self) -> Statistics:
        """Return the statistics since the last call."""
        taken, self.statistics = self.statistics, Statistics()
        return taken

    def count_completed(self) -> int:
        """Return how many runs have completed, whatever process of the Stoker answers."""
        return sum(int(self._api.show_trigger(id, "?limit=1")["complete"]) for id in self.triggers)

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            servers = random.sample(self._servers, self._size)
            begun = time.perf_counter()
            try:
                self.triggers.append(self._api.start_trigger(self._config, servers=servers))
            except (OSError, RuntimeError):
                self.failures += 1
            else:
                self.statistics.record("trigger", time.perf_counter() - begun)


def _server_ids(api: Api) -> list[str]:
    """Return the ids of all servers, page by page."""
    ids: list[str] = []
    while True:
        page = api("GET", "/servers?limit=1000" + (f"&marker={ids[-1]}" if ids else ""))["servers"]
        if not page:
            return ids
        ids += [server["id"] for server in page]
