"""
The threads that run handlers: one executor for most handlers, one for templates, one for logins.

A route names its executor (``http.request_context.Route``). An executor limits the threads of one key, which is a
project or a client's address. Its queue is bounded: further requests are answered with 429.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from stoker.http.thread_pool import ThreadPool
from stoker.model.errors import TooManyRequests

T = TypeVar("T")
P = ParamSpec("P")


class Executor:
    """
    Runs blocking handlers on threads, fairly between keys. Use it on one event loop, so that it needs no lock.

    - ``threads``: threads for ``run``; ``share``: how many of them may work for one key at a time.
    - ``waiting``: calls that may wait for a thread; ``waiting_share``: how many of them for one key. Keys take turns.
    - ``spare``: additional threads, so that ``run_now`` finds a free thread when all others are busy.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int,
        share: int,
        waiting: int,
        waiting_share: int,
        spare: int = 0,
    ) -> None:
        self.name = name
        self._pool = ThreadPool(f"stoker-{name}", threads + spare)
        self._threads, self._share = threads, share
        self._most_waiting, self._waiting_share = waiting, waiting_share
        self._busy = 0
        self._running: dict[str, int] = {}
        #: Waiting calls by key; the key whose turn is next comes first.
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self._waiting = 0

    async def run(self, key: str, do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """
        Run ``do`` on a thread on behalf of ``key``, and return its result.

        Raises TooManyRequests, and whatever ``do`` raises.
        """
        if self._busy < self._threads and self._running.get(key, 0) < self._share:
            self._take(key)
        else:
            await self._turn(key)
        try:
            return await self._pool.run(partial(do, **named) if named else do, *args)
        finally:
            self._release(key)

    async def run_now(self, do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a short call without waiting for a turn, such as a token lookup or the read of a document."""
        return await self._pool.run(partial(do, **named) if named else do, *args)

    def shut_down(self) -> None:
        """Start no more calls, and wait for the running ones."""
        self._pool.shut_down()

    def _take(self, key: str) -> None:
        self._busy += 1
        self._running[key] = self._running.get(key, 0) + 1

    def _release(self, key: str) -> None:
        self._busy -= 1
        self._running[key] -= 1
        if not self._running[key]:
            del self._running[key]
        while self._waiting and self._busy < self._threads and self._start_next():
            pass

    def _start_next(self) -> bool:
        """Give a thread to the first waiting key that is below its share. Return whether there was such a key."""
        for key, queue in self._queues.items():
            if self._running.get(key, 0) < self._share:
                turn = queue.popleft()
                self._waiting -= 1
                del self._queues[key]
                if queue:
                    self._queues[key] = queue  # at the end of the queue
                self._take(key)
                turn.set_result(None)
                return True
        return False

    async def _turn(self, key: str) -> None:
        queue = self._queues.get(key)
        if self._waiting >= self._most_waiting or (queue is not None and len(queue) >= self._waiting_share):
            raise TooManyRequests(f"Too many requests wait already ({self.name}): try again in a moment", retry_after=2)
        if queue is None:
            queue = self._queues[key] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._waiting += 1
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.remove(turn)
                self._waiting -= 1
                if not queue:
                    self._queues.pop(key, None)
            else:
                self._release(key)
            raise


#: As many threads in total as Starlette uses. Threads wait for disk reads, or for the commit of their group of writes.
HANDLERS = Executor("handlers", threads=32, share=24, waiting=2000, waiting_share=1000, spare=8)
#: Templates are CPU-bound: few threads, so that the event loop is not delayed.
TEMPLATES = Executor("templates", threads=4, share=2, waiting=64, waiting_share=16)
#: Requests that hash passwords. A hash takes 16 MiB and about 50 ms of a core: few threads keep logins from using all
#: memory and all cores. Addresses and projects take turns.
LOGINS = Executor("logins", threads=2, share=2, waiting=40, waiting_share=10)


async def in_thread(do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a blocking call on a thread. Call it on the event loop."""
    return await HANDLERS.run_now(do, *args, **named)


def shut_down(seconds: float) -> bool:
    """Start no more calls. Return whether all running calls have returned within ``seconds``."""

    def wait() -> None:
        for executor in (HANDLERS, TEMPLATES, LOGINS):
            executor.shut_down()

    waiting = threading.Thread(target=wait, daemon=True)  # noqa: TID251 — one call
    waiting.start()
    waiting.join(seconds)
    return not waiting.is_alive()
