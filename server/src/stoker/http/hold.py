"""
Held requests: they wait on the event loop for topics. A long poll is one ``hold``, a stream is one after the other.

Register before you read the store, so that no notification between the read and the wait is lost. A waiter costs one
future, but no task and no timer of its own: ten thousand waiters are cheap.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from stoker.model.errors import TooManyRequests
from stoker.store.notifier import ALL, Notifier

if TYPE_CHECKING:
    from stoker.http.request import RequestContext

T = TypeVar("T")

#: Waits end at multiples of this time in seconds. Ten thousand idle agents then cause ten wake-ups of the process per
#: second instead of hundreds, each for one poll.
_TICK = 0.1
#: Waits that may end in one tick, in any case and as a multiple of the average, before further ones end earlier.
_FEW, _CROWD = 20, 2.0
#: Event streams that one token and one project may have open at a time.
_LIMITS = {"token": 16, "project": 128}
#: Seconds after which a refused client may try again.
_RETRY_SECONDS = 10


class Waiter:
    """
    One request that waits for its topic, once or several times, until the end of its block.

    ``is_only``: the request supersedes an earlier one that is the only one, too. Without this limit, one key could hold
    thousands of polls, and each notification would have to answer all of them.
    """

    # A generator of contextlib would take 250 bytes more for each agent.
    __slots__ = ("_is_only", "_notified", "_topic", "_waiters", "is_superseded")

    def __init__(self, waiters: Waiters, topic: str, *, is_only: bool = False) -> None:
        self._waiters = waiters
        self._topic = topic
        self._is_only = is_only
        self._notified: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.is_superseded = False

    def __enter__(self) -> Waiter:
        self._waiters.add(self, self._topic)
        if self._is_only:
            if (other := self._waiters.only.get(self._topic)) is not None:
                other.is_superseded = True
                other.end(True)
            self._waiters.only[self._topic] = self
        return self

    def __exit__(self, *_: object) -> None:
        self._waiters.remove(self, self._topic)
        if self._is_only and not self.is_superseded:
            del self._waiters.only[self._topic]

    async def wait(self, seconds: float, *, may_end_early: bool = False) -> bool:
        """
        Wait until the topic is notified, at most ``seconds`` and the rest of a tick. Return whether it was notified.

        A notification since the registration, or since the last wait, counts, too. With ``may_end_early``, the wait may
        take half of the time if many others end at the same time.
        """
        deadlines = self._waiters.deadlines
        tick = deadlines.add(self, seconds, may_end_early=may_end_early)
        try:
            return await self._notified
        finally:
            deadlines.remove(self, tick)
            self._notified = self._notified.get_loop().create_future()

    def wake(self, _: str) -> None:
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
        self._by_topic: dict[str, set[Waiter | Subscription]] = {}
        #: The waiters that are the only ones of their topics: the polls of agents.
        self.only: dict[str, Waiter] = {}
        self._open: Counter[tuple[str, str]] = Counter()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: The server is shutting down, so requests must not wait any more.
        self.closed = False
        self.deadlines = Deadlines()
        notifier.subscribe(self._on_notification)

    def count(self) -> int:
        """Return the number of topics that requests wait for. May be called on any thread."""
        return len(self._by_topic)

    @contextmanager
    def count_stream(self, request: RequestContext) -> Iterator[None]:
        """Count the stream of the request during the block. Raises TooManyRequests if its client has too many."""
        token = request.raw.headers.get("x-auth-token", "")
        holders = (("token", hashlib.sha256(token.encode()).hexdigest()), ("project", request.project))
        for holder in holders:
            limit = _LIMITS[holder[0]]
            if self._open[holder] >= limit:
                raise TooManyRequests(
                    f"This {holder[0]} has {limit} event streams open already: end some first.",
                    retry_after=_RETRY_SECONDS,
                )
        self._open.update(holders)
        try:
            yield
        finally:
            self._open.subtract(holders)
            for holder in holders:
                if not self._open[holder]:
                    del self._open[holder]

    def add(self, waiter: Waiter | Subscription, *topics: str) -> None:
        """Wake ``waiter`` at each notification of the topics until ``remove``."""
        self._loop = asyncio.get_running_loop()
        if self.closed:
            waiter.wake(ALL)
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(waiter)

    def remove(self, waiter: Waiter | Subscription, *topics: str) -> None:
        """Undo ``add`` with the same topics."""
        for topic in topics:
            waiting = self._by_topic[topic]
            waiting.discard(waiter)
            if not waiting:
                del self._by_topic[topic]

    def close(self) -> None:
        """Wake all waiters and end later waits at once. Call it on the event loop."""
        self.closed = True
        self.wake(ALL)

    def wake(self, *topics: str) -> None:
        """Wake the waiters of the topics. ``ALL``: of every topic."""
        for topic in topics:
            for name in list(self._by_topic) if topic == ALL else (topic,):
                for waiter in list(self._by_topic.get(name, ())):
                    waiter.wake(topic)

    def _on_notification(self, notifications: Mapping[str, int]) -> None:
        """Runs on the thread that committed."""
        topics = [ALL] if ALL in notifications else [topic for topic in notifications if topic in self._by_topic]
        if topics and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.wake, *topics)


async def hold(
    request: RequestContext,
    topic: str,
    seconds: float,
    read: Callable[[], Awaitable[tuple[T, bool]]],
    superseded: T | None = None,
) -> T:
    """
    Return the result of ``read`` as soon as it is complete, at the latest after ``seconds``.

    ``read`` returns a result and whether it is complete. It runs again at each notification of the topic. A request of
    minutes may outlive its token or key: the route's access rule applies to a complete result, and after each wait.
    ``superseded`` is the result of a poll that a later one of the topic ends; only polls may end early. Raises
    Unauthorized or Forbidden.
    """
    waiters, until = request.app.waiters, time.monotonic() + seconds
    has_waited, is_poll = False, superseded is not None
    with Waiter(waiters, topic, is_only=is_poll) as waiter:
        while True:
            result, is_complete = await read()
            if superseded is not None and waiter.is_superseded:
                result, is_complete = superseded, True
            if is_complete or has_waited:
                await request.authorize_again()
            left = until - time.monotonic()
            if is_complete or left <= 0 or waiters.closed:
                return result
            await waiter.wait(left, may_end_early=is_poll)
            has_waited = True


class Subscription:
    """
    Many topics that a stream waits for as one, ``topic``, and those of them that were notified.

    Use it on the event loop only.
    """

    def __init__(self, waiters: Waiters, topics: Iterable[str] = ()) -> None:
        self._waiters = waiters
        self._topics = set(topics)
        #: The topics that were notified since the last ``take``, which may include ``ALL``.
        self.notified: set[str] = set()
        self.topic = f"subscription/{id(self)}"
        waiters.add(self, *self._topics)

    def watch(self, topics: Iterable[str]) -> None:
        """Subscribe to these topics alone. New ones count as notified, because they may have been so before."""
        before, self._topics = self._topics, set(topics)
        self._waiters.remove(self, *(before - self._topics))
        if new := self._topics - before:
            self._waiters.add(self, *new)
            self.notified |= new
            self._waiters.wake(self.topic)

    def drop(self, *topics: str) -> None:
        self._topics.difference_update(topics)
        self._waiters.remove(self, *topics)

    def wake(self, topic: str) -> None:
        """Note that a topic was notified, and wake the streams."""
        self.notified.add(topic)
        self._waiters.wake(self.topic)

    def take(self) -> set[str]:
        """Return the topics that were notified since the last call, which may include ``ALL``."""
        notified, self.notified = self.notified, set()
        return notified

    def close(self) -> None:
        self.drop(*self._topics.copy())
