"""The agents of one process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from bench.swarm.agent import Agent
from bench.swarm.connection import Endpoint
from bench.swarm.statistics import Statistics


@dataclass
class Swarm:
    """
    Simulated agents with the ``keys`` of enrolled servers::

        swarm = Swarm(Endpoint.parse("http://127.0.0.1:8004"), keys)
        asyncio.run(swarm.run(lambda: swarm.statistics.counts["results"] >= len(keys)))

    A run takes up to twice the mean ``duration``, and fails with the probability ``failure``. ``start_within`` spreads
    the agents' first requests over this time. Times are seconds. ``first_index`` is the number of the first agent among
    those of all processes.
    """

    endpoint: Endpoint
    keys: Sequence[str]
    duration: float = 0.0
    failure: float = 0.0
    start_within: float = 0.0
    first_index: int = 0
    #: Seconds for which the server may hold a poll.
    wait: int = 30
    statistics: Statistics = field(default_factory=Statistics)
    #: How often an agent began each run, by config id: more than once is a defect.
    begun: Counter[str] = field(default_factory=Counter)
    #: The start of each run, in seconds since the epoch.
    begin_times: dict[str, float] = field(default_factory=dict)
    polling: int = 0
    running: int = 0
    #: Why agents have ended that were not stopped: each is a defect of the swarm.
    failures: list[BaseException] = field(default_factory=list)

    def begin(self, config_id: str) -> None:
        """Record the beginning of a run."""
        self.statistics.counts["runs"] += 1
        self.begun[config_id] += 1
        if self.begun[config_id] > 1:
            self.statistics.counts["runs begun twice"] += 1
        self.begin_times[config_id] = time.time()
        self.running += 1

    async def run(self, is_done: Callable[[], bool], limit: float = 300) -> None:
        """
        Run all agents until ``is_done``, which is called in a thread, returns True.

        Raises TimeoutError after ``limit`` seconds.
        """
        async with self.agents(), asyncio.timeout(limit):
            while not await asyncio.to_thread(is_done):
                await asyncio.sleep(0.1)

    @asynccontextmanager
    async def agents(self) -> AsyncIterator[None]:
        """Run all agents while the block runs. Raises the exception of an agent that has ended by itself."""
        agents = [Agent(self, key, self.first_index + number) for number, key in enumerate(self.keys)]
        tasks = [asyncio.create_task(self._start(number, agent)) for number, agent in enumerate(agents)]
        for task in tasks:
            task.add_done_callback(self._on_end)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self.failures:
            raise self.failures[0]

    def take_statistics(self) -> Statistics:
        """Return the statistics since the last call."""
        taken, self.statistics = self.statistics, Statistics()
        return taken

    async def _start(self, number: int, agent: Agent) -> None:
        await asyncio.sleep(self.start_within * number / len(self.keys))
        await agent.run()

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failures.append(error)
