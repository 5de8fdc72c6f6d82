"""
Long polls: requests on the event loop that wait for topics.

Register a waiter before you read the store, so that no notification between the read and the wait is lost. A waiter
costs one future and one timer, but no task: ten thousand waiters are cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stoker.store.notifier import ALL, Notifier


class Waiter:
    """One request that waits for its topics. ``Waiters.register`` creates it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._notified: asyncio.Future[bool] = loop.create_future()
        #: The topics that were notified, which may include ``ALL``; None: none.
        self.topics: set[str] | None = None

    async def wait(self, seconds: float) -> bool:
        """
        Wait until a topic is notified, at most ``seconds``. Return whether a topic was notified.

        A notification since the registration counts, too.
        """
        timer = self._loop.call_later(seconds, self._end, False)
        try:
            return await self._notified
        finally:
            timer.cancel()

    def wake(self, topic: str | None = None) -> None:
        """End the wait because of ``topic``, or as if a topic had been notified."""
        if topic is not None:
            self.topics = {topic} if self.topics is None else self.topics | {topic}
        self._end(True)

    def _end(self, notified: bool) -> None:
        if not self._notified.done():
            self._notified.set_result(notified)


class Waiters:
    """All waiting requests of this process, by topic. Use it on the event loop only."""

    def __init__(self, notifier: Notifier) -> None:
        self._by_topic: dict[str, set[Waiter]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        notifier.subscribe(self._on_notification)

    @property
    def closed(self) -> bool:
        """Whether the server is shutting down, so that requests must not wait any more."""
        return self._closed

    def count(self) -> int:
        """Return the number of topics that requests wait for. May be called on any thread."""
        return len(self._by_topic)

    @contextmanager
    def register(self, *topics: str) -> Iterator[Waiter]:
        """Register a waiter for the topics until the block ends."""
        self._loop = asyncio.get_running_loop()
        waiter = Waiter(self._loop)
        if self._closed:
            waiter.wake()
        for topic in topics:
            self._by_topic.setdefault(topic, set()).add(waiter)
        try:
            yield waiter
        finally:
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
            for waiter in self._by_topic.get(name, ()):
                waiter.wake(topic)
