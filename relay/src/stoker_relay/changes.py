"""The stream of changes: one request to the central Stoker that names the servers whose documents have changed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable

import msgspec
import structlog

from stoker.failures import backoff
from stoker_relay.center import Center, CenterAway
from stoker_relay.keys import Keys
from stoker_relay.metrics import RelayMetrics
from stoker_relay.polls import Polls

_log = structlog.get_logger("stoker_relay")

#: Seconds for which agents that come or go are collected before the stream is opened again: at least, and per agent,
#: because the request names all of them.
_COLLECT_SECONDS, _COLLECT_SECONDS_PER_AGENT = 0.1, 0.0001
#: Seconds between two searches for agents that have gone.
_EXPIRE_SECONDS = 5.0
#: Pauses after failures.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


class _Line(msgspec.Struct):
    revisions: dict[str, int]
    refused: list[str]


_decoder = msgspec.json.Decoder(_Line)


class ChangeStream:
    """
    Keeps the stream open. ``run`` runs until it is cancelled.

    The first line of a stream names all of its agents, so nothing is lost between two streams. ``on_attempt`` is called
    when the central Stoker has sent the first line, and after each failure.
    """

    def __init__(
        self, center: Center, polls: Polls, keys: Keys, metrics: RelayMetrics, on_attempt: Callable[[], None]
    ) -> None:
        self._center = center
        self._polls = polls
        self._keys = keys
        self._metrics = metrics
        self._on_attempt = on_attempt
        self._failures = 0

    async def run(self) -> None:
        """Follow the changes."""
        while True:
            try:
                await self._follow()
            except Exception as problem:
                if not isinstance(problem, CenterAway):
                    _log.exception("changes.failed")
                self._on_attempt()
                longest = backoff(self._failures, first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
                self._failures += 1
                await asyncio.sleep(longest * random.uniform(0.5, 1.0))  # noqa: S311 — spreads the relays

    async def _follow(self) -> None:
        """Follow one stream until other agents poll than those in it. Raises CenterAway, also at its end."""
        self._polls.changed.clear()
        self._metrics.streams.inc()
        body = msgspec.json.encode({"agents": self._polls.describe_agents()})
        async with self._center.follow(body) as lines:
            self._apply(await anext(lines, ""))
            self._failures = 0
            self._on_attempt()
            tasks = (asyncio.ensure_future(self._read(lines)), asyncio.ensure_future(self._await_other_agents()))
            try:
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
            if isinstance(results[0], Exception):
                raise results[0]

    async def _read(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            if line:
                self._apply(line)
        raise CenterAway("the stream has ended")

    def _apply(self, text: str) -> None:
        try:
            line = _decoder.decode(text)
        except msgspec.MsgspecError as error:
            raise CenterAway(f"a line of the stream cannot be read: {error}") from None
        for key in self._polls.apply(line.revisions, line.refused):
            self._keys.forget(key)

    async def _await_other_agents(self) -> None:
        """Return when other agents poll than those in the stream."""
        while not self._polls.changed.is_set():
            try:
                await asyncio.wait_for(self._polls.changed.wait(), _EXPIRE_SECONDS)
            except TimeoutError:
                self._polls.expire()
        await asyncio.sleep(_COLLECT_SECONDS + self._polls.count_agents() * _COLLECT_SECONDS_PER_AGENT)
