"""The network and the machines of a swarm: latency, lost connections, killed agents, durations of runs."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field


class ConnectionLost(OSError):
    """The simulated network cut the connection."""


@dataclass(frozen=True, slots=True)
class Faults:
    """
    A model of the network and of the machines. Times are seconds, the others are probabilities from 0 to 1.

    ``random`` has a seed, so that two runs of a swarm with the same arguments meet the same faults.
    """

    #: The time that a request takes to the server and back, and its largest random deviation.
    latency: float = 0.0
    jitter: float = 0.0
    #: A connection is cut, for each request: half of them before the request, half before the response.
    loss: float = 0.0
    #: The agent is killed, for each run.
    kill: float = 0.0
    #: The run fails.
    failure: float = 0.0
    #: The duration of a run, and its largest random deviation.
    duration: float = 0.0
    spread: float = 0.0
    random: random.Random = field(default_factory=lambda: random.Random(1))

    def decide(self, probability: float) -> bool:
        """Return True with this probability."""
        return probability > 0 and self.random.random() < probability

    async def travel(self) -> None:
        """Wait for half of the latency, once for each direction. Raises ConnectionLost."""
        if self.latency or self.jitter:
            await asyncio.sleep(self._around(self.latency, self.jitter) / 2)
        if self.decide(self.loss / 2):
            raise ConnectionLost("the connection was cut")

    async def work(self) -> None:
        """Wait for the duration of a run."""
        await asyncio.sleep(self._around(self.duration, self.spread))

    def _around(self, value: float, deviation: float) -> float:
        return max(0.0, value + self.random.uniform(-deviation, deviation)) if deviation else value
