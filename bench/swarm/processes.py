"""The processes of a swarm, seen from the program that starts them."""

from __future__ import annotations

import contextlib
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection as Pipe
from typing import Any

from bench.swarm.process import Share, run_share
from bench.swarm.statistics import Statistics


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
            process = context.Process(target=run_share, args=(share, theirs), daemon=True)
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
