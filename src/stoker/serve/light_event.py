"""An event for coroutines that takes little memory."""

from __future__ import annotations

import asyncio


class LightEvent:
    """
    As ``asyncio.Event``, for one event loop.

    ``asyncio.Event`` has a deque, which allocates 600 bytes. A connection has two events, and nothing waits for them
    most of the time.
    """

    __slots__ = ("_is_set", "_waiting")

    def __init__(self, *, is_set: bool = False) -> None:
        self._is_set = is_set
        self._waiting: list[asyncio.Future[None]] = []

    def is_set(self) -> bool:
        """Return whether the event is set."""
        return self._is_set

    def set(self) -> None:
        """Set the event, and wake everything that waits for it."""
        self._is_set = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """Unset the event, so that later calls of ``wait`` wait for the next ``set``."""
        self._is_set = False

    async def wait(self) -> bool:
        """Wait until the event is set. Returns True."""
        if not self._is_set:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            try:
                await future
            finally:
                self._waiting.remove(future)
        return True
