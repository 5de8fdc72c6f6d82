"""
Long polls: who waits for which topic, on the event loop.

A waiter is registered before the store is read, so a ring between the read and the wait is not lost. Each costs
one future and one timer, no task: ten thousand are cheap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from stoker.store.bell import Bell


class Waiter:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rung: asyncio.Future[bool] = loop.create_future()

    async def wait(self, seconds: float) -> bool:
        """
        Until a topic is rung, also when it was since this waiter was registered, or the time is over. Whether it was
        rung.
        """
        timer = self._loop.call_later(seconds, self._end, False)
        try:
            return await self._rung
        finally:
            timer.cancel()

    def wake(self) -> None:
        self._end(True)

    def _end(self, rung: bool) -> None:
        if not self._rung.done():
            self._rung.set_result(rung)


class Waiters:
    def __init__(self, bell: Bell) -> None:
        self._by_topic: dict[str, set[Waiter]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        bell.listen(self._on_ring)

    @property
    def closed(self) -> bool:
        """The server is going: nobody should wait any more."""
        return self._closed

    @contextmanager
    def register(self, *topics: str) -> Iterator[Waiter]:
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
        """Let everybody go. Called on the event loop."""
        self._closed = True
        self._wake("*")

    def _on_ring(self, topic: str, _: int) -> None:
        """In whatever thread committed."""
        if self._loop is not None and (topic == "*" or topic in self._by_topic) and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, topic)

    def _wake(self, topic: str) -> None:
        topics = list(self._by_topic) if topic == "*" else [topic]
        for each in topics:
            for waiter in self._by_topic.get(each, ()):
                waiter.wake()
