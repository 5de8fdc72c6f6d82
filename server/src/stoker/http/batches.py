"""
Batches: calls of many requests that one thread executes together, in one transaction for example.

While the thread handles a batch, further items wait for the next one. A batch therefore has one item when the process
is idle, and many when it is busy: then each item costs less.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import Context
from functools import partial
from typing import Any, Generic, TypeVar

from stoker.http.threads import POOL, resolve
from stoker.model.errors import TooManyRequests, Unavailable

I = TypeVar("I")  # noqa: E741 — an item
R = TypeVar("R")
#: Items that may wait.
_MOST_WAITING = 20_000


class Batches(Generic[I, R]):
    """
    Handles items in batches, one batch at a time. Use it on one event loop only.

    ``handle`` receives at most ``size`` items on a thread, and returns the result or the exception of each. If it
    raises, each item is handled alone, so that an item with an error does not affect the others.
    """

    def __init__(
        self, name: str, handle: Callable[[Sequence[I]], Sequence[R | BaseException]], *, size: int = 100
    ) -> None:
        self._name, self._handle, self._size = name, handle, size
        self._waiting: deque[tuple[I, asyncio.Future[R]]] = deque()
        self._is_busy = False

    async def submit(self, item: I) -> R:
        """Return the result of the item, or raise its exception. Raises TooManyRequests if too many items wait."""
        if len(self._waiting) >= _MOST_WAITING:
            raise TooManyRequests(f"Too many requests wait already ({self._name}): try again in a moment", 2)
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if not self._is_busy:
            self._begin()
        return await future

    def _begin(self) -> None:
        """Handle the next batch, if any item waits."""
        batch = [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]
        self._is_busy = bool(batch)
        if batch:
            # In a context of its own, because a batch belongs to no single request.
            call = Context().run(POOL.run, self._handle_each, [item for item, _ in batch])
            call.add_done_callback(partial(self._end, [future for _, future in batch]))

    def _end(self, futures: Sequence[asyncio.Future[Any]], call: asyncio.Future[Sequence[Any]]) -> None:
        outcomes = [asyncio.CancelledError()] * len(futures) if call.cancelled() else call.result()
        for future, outcome in zip(futures, outcomes, strict=True):
            resolve(future, outcome)
        self._begin()

    def _handle_each(self, items: Sequence[I]) -> Sequence[R | BaseException]:
        """Return the result or the exception of each item."""
        try:
            return self._handle(items)
        except Unavailable as error:  # the database does not answer: every item would wait for it
            return [error] * len(items)
        except BaseException as error:
            return [error] if len(items) == 1 else [self._handle_each([item])[0] for item in items]
