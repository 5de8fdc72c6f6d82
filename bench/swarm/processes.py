"""The processes of a swarm: what each runs, and how they are started and report."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

from bench.swarm.connection import Endpoint
from bench.swarm.enrollment import EnrollmentRefused, enroll_swarm
from bench.swarm.statistics import Statistics
from bench.swarm.swarm import Swarm


@dataclass(frozen=True, slots=True)
class Share:
    """The agents of one process: their names with their keys (None: to be enrolled with ``token``)."""

    url: str
    ca_file: str | None
    token: str
    keys: Mapping[str, str | None]
    first_index: int
    start_within: float
    #: Seconds between two reports.
    interval: float
    duration: float = 0.0
    failure: float = 0.0


def _run_share(share: Share, pipe: Pipe) -> None:
    """
    Enroll the agents that have no key, run all, and send reports: ``statistics`` since the last report,
    ``polling``, and at first ``keys`` by name. A text is sent instead if the swarm cannot run.
    """
    endpoint, statistics = Endpoint.parse(share.url, share.ca_file), Statistics()
    missing = [name for name, key in share.keys.items() if key is None]
    try:
        enrolled = asyncio.run(enroll_swarm(endpoint, share.token, missing, statistics)) if missing else {}
    except EnrollmentRefused as refusal:
        pipe.send(str(refusal))
        return
    except (OSError, EOFError) as error:
        pipe.send(f"{share.url} does not answer: {error}")
        return
    keys = {name: key or enrolled[name] for name, key in share.keys.items()}
    swarm = Swarm(
        endpoint,
        list(keys.values()),
        share.duration,
        share.failure,
        share.start_within,
        share.first_index,
        statistics=statistics,
    )
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):  # the parent has ended
        asyncio.run(_report(swarm, share, keys, pipe))


async def _report(swarm: Swarm, share: Share, keys: Mapping[str, str], pipe: Pipe) -> None:
    async with swarm.agents():
        while True:
            await asyncio.sleep(share.interval)
            pipe.send({"statistics": swarm.take_statistics(), "polling": swarm.polling, "keys": keys})
            keys = {}


class SwarmFailed(Exception):
    """A process of the swarm cannot run its agents."""


@dataclass(frozen=True, slots=True)
class Report:
    """What all processes report together: the ``statistics`` since the last report, and the open polls."""

    statistics: Statistics
    polling: int


class SwarmProcesses:
    """The running processes of a swarm. ``running`` starts them."""

    def __init__(self, pipes: Sequence[Pipe], pids: Sequence[int]) -> None:
        self._pipes = pipes
        self.pids = pids
        #: The keys of all agents by name, after the first report.
        self.keys: dict[str, str] = {}

    @classmethod
    @contextlib.contextmanager
    def running(cls, shares: Sequence[Share]) -> Iterator[SwarmProcesses]:
        """Start a process for each share, and kill them after the block."""
        context = multiprocessing.get_context("spawn")
        pipes, processes = [], []
        for share in shares:
            ours, theirs = context.Pipe()
            process = context.Process(target=_run_share, args=(share, theirs), daemon=True)
            process.start()
            theirs.close()
            pipes.append(ours)
            processes.append(process)
        try:
            yield cls(pipes, [process.pid for process in processes if process.pid])
        finally:
            for process in processes:
                process.kill()
                process.join()

    def report(self) -> Report:
        """Wait for the next report of each process. Raises SwarmFailed."""
        statistics, polling = Statistics(), 0
        for pipe in self._pipes:
            try:
                message: Any = pipe.recv()
            except EOFError:
                message = "a process of the swarm was killed"
            if isinstance(message, str):
                raise SwarmFailed(message)
            statistics.add(message["statistics"])
            polling += message["polling"]
            self.keys |= message["keys"]
        return Report(statistics, polling)
