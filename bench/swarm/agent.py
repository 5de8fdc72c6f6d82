"""One simulated agent: a held poll, runs, and their results."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import TYPE_CHECKING

from bench.swarm.connection import Answer, Connection

if TYPE_CHECKING:
    from bench.swarm.swarm import Swarm

#: Seconds that an answer may take, in addition to the time for which the server may hold a poll.
_ANSWER_SECONDS = 20
#: Seconds before the first reconnect, and at most. Real agents spread them likewise.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0
_LOST = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError)
#: The hooks of a real agent; the server refuses deployments whose hook is missing.
_AGENT = "swarm; hooks=script; modes=check,preview"


class Unexpected(OSError):
    """The server answered with an unexpected status. ``pause``: its Retry-After in seconds."""

    def __init__(self, status: int, pause: float) -> None:
        super().__init__(f"status {status}")
        self.pause = pause


class Agent:
    """An agent with the key of an enrolled server."""

    def __init__(self, swarm: Swarm, key: str, index: int) -> None:
        self._swarm = swarm
        self._connection = Connection(swarm.endpoint, key, index)
        self._etag: str | None = None
        #: The begun runs, and the exit codes of those that the server has not acknowledged.
        self._begun: set[str] = set()
        self._codes: dict[str, int] = {}
        #: When the first report of each of these results began.
        self._reported_at: dict[str, float] = {}
        self._failures = 0

    async def run(self) -> None:
        """Poll until the task is cancelled."""
        began: float | None = time.perf_counter()
        try:
            while True:
                try:
                    await self._poll()
                    if began is not None:
                        self._swarm.statistics.record("connect", time.perf_counter() - began)
                    began, self._failures = None, 0
                except _LOST as error:
                    self._connection.close()
                    self._swarm.statistics.counts[f"error: {error or type(error).__name__}"] += 1
                    began = began or time.perf_counter()
                    await self._pause(error.pause if isinstance(error, Unexpected) else 0.0)
        finally:
            self._connection.close()

    async def _pause(self, requested: float) -> None:
        """Wait as a real agent does: the server's Retry-After, else a time that doubles; both spread at random."""
        longest = requested or min(_FIRST_PAUSE * 2**self._failures, _LONGEST_PAUSE)
        self._failures += 1
        await asyncio.sleep(longest * random.uniform(0.5, 1.0))

    async def _poll(self) -> None:
        await self._report_all()
        swarm = self._swarm
        headers = {"X-Stoker-Agent": _AGENT}
        if self._etag:
            headers["If-None-Match"] = self._etag
        # After a failure, the first poll is not held, so that its answer shows when the agent is served again.
        wait = swarm.wait if self._etag and not self._failures else 0
        held = int(wait > 0)
        swarm.polling += held
        swarm.statistics.counts["polls"] += 1
        try:
            began = time.perf_counter()
            async with asyncio.timeout(wait + _ANSWER_SECONDS):
                answer = await self._connection.request("GET", f"/agent/v1/document?wait={wait}", headers=headers)
            if not wait:
                swarm.statistics.record("document", time.perf_counter() - began)
        finally:
            swarm.polling -= held
        if answer.status == 304:
            await asyncio.sleep(_requested_pause(answer))
            return
        _expect(answer, 200)
        swarm.statistics.counts["documents"] += 1
        document = json.loads(answer.body)
        for entry in document["deployments"]:
            await self._process(entry["id"])
        self._etag = answer.headers["etag"]

    async def _process(self, config_id: str) -> None:
        """Run a config once, and report its result."""
        if config_id not in self._begun:
            self._begun.add(config_id)
            self._codes[config_id] = await self._run(config_id)
            await self._report_all()

    async def _run(self, config_id: str) -> int:
        """Simulate a run, and return its exit code."""
        swarm = self._swarm
        swarm.begin(config_id)
        try:
            await asyncio.sleep(random.uniform(0.0, 2 * swarm.duration))
        finally:
            swarm.running -= 1
        return int(random.random() < swarm.failure)

    async def _report_all(self) -> None:
        """Report the results that the server has not acknowledged."""
        for config_id, code in list(self._codes.items()):
            await self._report(config_id, code)
            del self._codes[config_id], self._reported_at[config_id]

    async def _report(self, config_id: str, code: int) -> None:
        began = self._reported_at.setdefault(config_id, time.perf_counter())
        result = {"deploy_stdout": "", "deploy_stderr": "", "deploy_status_code": code}
        path = f"/agent/v1/runs/{config_id}/signal"
        async with asyncio.timeout(_ANSWER_SECONDS):
            answer = await self._connection.request("POST", path, json.dumps(result).encode())
        _expect(answer, 200, 404)
        self._swarm.statistics.record("result", time.perf_counter() - began)
        self._swarm.statistics.counts["results"] += 1


def _expect(answer: Answer, *statuses: int) -> None:
    if answer.status not in statuses:
        raise Unexpected(answer.status, _requested_pause(answer))


def _requested_pause(answer: Answer) -> float:
    pause = answer.headers.get("retry-after", "")
    return float(pause) if pause.isdigit() else 0.0
