"""
Long polls: requests on the event loop that wait for topics.

Register a waiter before you read the store, so that no notification between the read and the wait is lost. A waiter
costs one future, but no task and no timer of its own: ten thousand waiters are cheap.
"""

from __future__ import annotations

import asyncio
import math
import random
from typing import Protocol

from stoker.store.notifier import ALL, Notifier

#: Waits end at multiples of this time in seconds. Ten thousand idle agents then cause ten wake-ups of the process per
#: second instead of hundreds, each for one poll.
_TICK = 0.1
#: Waits that may end in one tick, in any case and as a multiple of the average, before further ones end earlier.
_FEW, _CROWD = 20, 2.0


class Wakeable(Protocol):
    """An object that is woken when one of its topics is notified."""

    def wake(self, topic: str | None = None) -> None:
        """Note that ``topic`` was notified; None: another reason."""


class Waiter:
    """One request that waits for its topics until the end of its block. ``Waiters.register`` creates it."""

    # A generator of contextlib would take 250 bytes more for each agent.
    __slots__ = ("_loop", "_notified", "_registered", "_waiters", "topics")

    def __init__(self, waiters: Waiters, registered: tuple[str, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiters = waiters
        self._registered = registered
        self._notified: asyncio.Future[bool] = self._loop.create_future()
        #: The topics that were notified, which may include ``ALL``; None: none.
        self.topics: set[str] | None = None

    def __enter__(self) -> Waiter:
        self._waiters.add(self, *self._registered)
        return self

    def __exit__(self, *_: object) -> None:
        self._waiters.remove(self, *self._registered)

    async def wait(self, seconds: float, *, may_end_early: bool = False) -> bool:
        """
        Wait until a topic is notified, at most ``seconds`` and the rest of a tick. Return whether a topic was notified.

        A notification since the registration counts, too. With ``may_end_early``, the wait may take half of the time if
        many others end at the same time.
        """
        deadlines = self._waiters.deadlines
        tick = deadlines.add(self, seconds, may_end_early=may_end_early)
        try:
            return await self._notified
        finally:
            deadlines.remove(self, tick)

    def wake(self, topic: str | None = None) -> None:
        """End the wait because of ``topic``, or as if a topic had been notified."""
        if topic is not None:
            self.topics = {topic} if self.topics is None else self.topics | {topic}
        self.end(True)

    def end(self, notified: bool) -> None:
        """End the wait. ``notified`` is its result."""
        if not self._notified.done():
            self._notified.set_result(notified)


class Deadlines:
    """
    The ends of waits without a notification, with one timer for all that end in the same tick.

    Agents that lost their connections together, as in a restart, poll again together. Their waits end at different
    times, so that they are not renewed together for ever.
    """

    def __init__(self) -> None:
        self._by_tick: dict[int, set[Waiter]] = {}
        self._count = 0

    def add(self, waiter: Waiter, seconds: float, *, may_end_early: bool) -> int:
        """End the wait in ``seconds`` or slightly later. Return the tick, for ``remove``."""
        loop = asyncio.get_running_loop()
        tick = math.ceil((loop.time() + seconds) / _TICK)
        if may_end_early and self._is_crowded(tick, seconds):
            tick -= random.randrange(int(seconds / _TICK / 2) + 1)  # noqa: S311 — spreads the waits
        waiting = self._by_tick.get(tick)
        if waiting is None:
            waiting = self._by_tick[tick] = set()
            loop.call_at(tick * _TICK, self._end, tick)
        waiting.add(waiter)
        self._count += 1
        return tick

    def remove(self, waiter: Waiter, tick: int) -> None:
        """Undo ``add``, after the wait has ended for any reason."""
        self._count -= 1
        if (waiting := self._by_tick.get(tick)) is not None:
            waiting.discard(waiter)

    def _is_crowded(self, tick: int, seconds: float) -> bool:
        """Return whether many more waits end in this tick than in the average one."""
        ending = len(self._by_tick.get(tick, ()))
        return ending > max(_FEW, _CROWD * self._count * _TICK / seconds)

    def _end(self, tick: int) -> None:
        for waiter in self._by_tick.pop(tick):
            waiter.end(False)


class Waiters:
    """All waiting requests of this process, by topic. Use it on the event loop only."""

    def __init__(self, notifier: Notifier) -> None:
        self._by_topic: dict[str, set[Wakeable]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self.deadlines = Deadlines()
        notifier.subscribe(self._on_notification)

    @property
    def closed(self) -> bool:
        """Whether the server is shutting down, so that requests must not wait any more."""
        return self._closed

    def count(self) -> int:
        """Return the number of topics that requests wait for. May be called on any thread."""
        return len(self._by_topic)

    def register(self, *topics: str) -> Waiter:
        """Return a waiter that is registered for the topics during its block."""
        return Waiter(self, topics)

    def add(self, waiter: Wakeable, *topics: str) -> None:
        """Wake ``waiter`` at each notification of the topics until ``remove``."""
        self._loop = asyncio.get_running_loop()
        if self._closed:
            waiter.wake()
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(waiter)

    def remove(self, waiter: Wakeable, *topics: str) -> None:
        """Undo ``add`` with the same topics."""
        for topic in topics:
            waiting = self._by_topic[topic]
            waiting.discard(waiter)
            if not waiting:
                del self._by_topic[topic]

    def close(self) -> None:
        """Wake all waiters and end later waits at once. Call it on the event loop."""
        self._closed = True
        self._wake(ALL)

    def _on_notification(self, topic: str, _: int) -> None:
        """Runs on the thread that committed."""
        if self._loop is not None and (topic == ALL or topic in self._by_topic) and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, topic)

    def _wake(self, topic: str) -> None:
        topics = list(self._by_topic) if topic == ALL else [topic]
        for name in topics:
            for waiter in list(self._by_topic.get(name, ())):
                waiter.wake(topic)
