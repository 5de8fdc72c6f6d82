"""
The threads that run blocking calls for the event loop: one pool, and limits for kinds of requests.

``concurrent.futures.ThreadPoolExecutor`` costs three times as much (measured: 55 µs of CPU per call instead of 17),
mostly for futures that threads can wait for. Here only the event loop waits. A route names its limit
(``http.api.Route``).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

from stoker.background_thread import BackgroundThread
from stoker.model.errors import TooManyRequests

T = TypeVar("T")
P = ParamSpec("P")
#: The loop and its future, the caller's context variables, the function, and the function's arguments.
_Call = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Context, Callable[..., Any], tuple[Any, ...]]


class ThreadPool:
    """
    Up to ``size`` threads, which start when they are first needed.

    Call ``run`` on the event loop only, so that counting needs no lock.
    """

    def __init__(self, name: str, size: int) -> None:
        self.size = size
        self._name = name
        self._threads: list[BackgroundThread] = []
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        #: Number of calls whose futures are not resolved.
        self._unfinished = 0
        self._is_closed = False

    def run(self, function: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """
        Call ``function(*args)`` on a thread with the caller's context variables, and return a future of the result.

        If the future is cancelled before a thread starts the call, the call is skipped. Raises RuntimeError after
        ``shut_down``.
        """
        if self._is_closed:
            raise RuntimeError(f"the thread pool {self._name} is shut down")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._unfinished += 1
        if len(self._threads) < min(self._unfinished, self.size):
            self._start_thread()
        self._calls.put((loop, future, copy_context(), function, args))
        return future

    def shut_down(self) -> None:
        """Start no more calls, cancel the calls that wait for a thread, and wait for the running ones."""
        self._is_closed = True
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join()

    def _start_thread(self) -> None:
        thread = BackgroundThread(f"{self._name}_{len(self._threads)}", self._work)
        self._threads.append(thread)
        thread.start()

    def _work(self) -> None:
        while (request := self._calls.get()) is not None:
            loop, future, context, function, args = request
            outcome: Any = asyncio.CancelledError()
            if not self._is_closed and not future.cancelled():
                try:
                    outcome = context.run(function, *args)
                except BaseException as error:
                    outcome = error
            with suppress(RuntimeError):  # the loop is closed, so no coroutine waits for the future
                loop.call_soon_threadsafe(self._finish, future, outcome)
            # they may be large, and the thread may wait long for the next call
            del request, loop, future, context, function, args, outcome

    def _finish(self, future: asyncio.Future[Any], outcome: Any) -> None:
        """End a future with a result or with the exception that was raised, unless its request was cancelled."""
        self._unfinished -= 1
        if future.done():
            return
        if isinstance(outcome, asyncio.CancelledError):
            future.cancel()
        elif isinstance(outcome, BaseException):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class _Line:
    """The calls of one key, running and waiting, and the semaphore of those that may run."""

    __slots__ = ("calls", "turns")

    def __init__(self, share: int) -> None:
        self.calls = 0
        self.turns = asyncio.Semaphore(share)


class Limit:
    """
    A limit of blocking calls, fair between keys. A key is a project or a client's address. Use it on the event loop.

    - ``threads``: calls that run at a time; ``share``: those of one key.
    - ``waiting``: calls that may wait; ``waiting_share``: those of one key.

    A key waits behind at most ``share`` calls of each other key, however many of these wait.
    """

    def __init__(self, name: str, *, threads: int, share: int, waiting: int, waiting_share: int) -> None:
        self.name, self.threads = name, threads
        self._share = share
        self._most, self._most_of_key = threads + waiting, share + waiting_share
        self._calls = 0
        self._lines: dict[str, _Line] = {}
        self._turns = asyncio.Semaphore(threads)

    async def run(self, key: str, do: Callable[..., T], *args: Any) -> T:
        """
        Run ``do`` on a thread on behalf of ``key``, and return its result.

        Raises TooManyRequests, and whatever ``do`` raises.
        """
        line = self._lines.get(key)
        if self._calls >= self._most or (line is not None and line.calls >= self._most_of_key):
            raise TooManyRequests(f"Too many requests wait already ({self.name}): try again in a moment", retry_after=2)
        if not self._calls:
            self._turns = asyncio.Semaphore(self.threads)  # a semaphore belongs to one event loop
        if line is None:
            line = self._lines[key] = _Line(self._share)
        self._calls += 1
        line.calls += 1
        try:
            async with line.turns, self._turns:
                return await _POOL.run(do, *args)
        finally:
            self._calls -= 1
            line.calls -= 1
            if not line.calls:
                del self._lines[key]


#: As many threads in total as Starlette uses. Threads wait for disk reads, or for the commit of their group of writes.
HANDLERS = Limit("handlers", threads=32, share=24, waiting=2000, waiting_share=1000)
#: Templates are CPU-bound: few threads, so that the event loop is not delayed.
TEMPLATES = Limit("templates", threads=4, share=2, waiting=64, waiting_share=16)
#: Requests that hash passwords. A hash takes 16 MiB and about 50 ms of a core: few threads keep logins from using all
#: memory and all cores.
LOGINS = Limit("logins", threads=2, share=2, waiting=40, waiting_share=10)
#: Requests that look up the name of a webhook: a slow DNS server must not keep the threads of other requests.
LOOKUPS = Limit("look-ups", threads=4, share=2, waiting=40, waiting_share=10)
#: Calls without a limit, such as token lookups and reads of documents, find a free thread when all limits are reached.
_SPARE = 8
_LIMITS = (HANDLERS, TEMPLATES, LOGINS, LOOKUPS)
_POOL = ThreadPool("stoker-handlers", sum(limit.threads for limit in _LIMITS) + _SPARE)


async def in_thread(do: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Run a short blocking call on a thread, without waiting for a turn. Call it on the event loop."""
    return await _POOL.run(partial(do, **named) if named else do, *args)


def shut_down(seconds: float) -> bool:
    """Start no more calls. Return whether all running calls have returned within ``seconds``."""
    waiting = threading.Thread(target=_POOL.shut_down, daemon=True)  # noqa: TID251 — one call
    waiting.start()
    waiting.join(seconds)
    return not waiting.is_alive()
