"""
Batches of what agents do most: a thread executes the calls of many requests together, in one transaction for example.

While the thread handles a batch, further items wait for the next one. A batch therefore has one item when the process
is idle, and many when it is busy: then each item costs less.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from stoker.background_thread import BackgroundThread
from stoker.deployments import run_end
from stoker.deployments.documents import Documents
from stoker.deployments.run_end import Report
from stoker.model.errors import EntityNotFound, TooManyRequests, Unavailable
from stoker.servers.keys import KeyRequest, Keys
from stoker.servers.presence import LastSeen
from stoker.stacks.engine import Engine
from stoker.store.open import Store

I = TypeVar("I")  # noqa: E741 — an item
R = TypeVar("R")
#: Items that may wait.
_MOST_WAITING = 20_000


class Batches(Generic[I, R]):
    """
    Handles items in batches, on a thread that starts with the first item.

    ``handle`` receives at most ``size`` items, and returns the result or the exception of each. If it raises, each item
    is handled alone, so that an item with an error does not affect the others. Call ``submit`` on one event loop only.
    """

    def __init__(
        self,
        name: str,
        handle: Callable[[Sequence[I]], Sequence[R | BaseException]],
        *,
        size: int = 100,
    ) -> None:
        self._name, self._handle, self._size = name, handle, size
        self._changed = threading.Condition()
        self._waiting: deque[tuple[I, asyncio.Future[R]]] = deque()
        self._thread: BackgroundThread | None = None
        self._is_idle = False
        self._loop: asyncio.AbstractEventLoop | None = None

    async def submit(self, item: I) -> R:
        """Return the result of the item, or raise its exception. Raises TooManyRequests if too many items wait."""
        if len(self._waiting) >= _MOST_WAITING:
            raise TooManyRequests(f"Too many requests wait already ({self._name}): try again in a moment", 2)
        self._loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = self._loop.create_future()
        with self._changed:
            self._waiting.append((item, future))
            if self._is_idle:
                self._is_idle = False
                self._changed.notify()
        if self._thread is None:
            self._thread = BackgroundThread(f"stoker-{self._name}", self._run)
            self._thread.start()
        return await future

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting:
                    self._is_idle = True
                    self._changed.wait()
                batch = [self._waiting.popleft() for _ in range(min(self._size, len(self._waiting)))]
            items, futures = zip(*batch, strict=True)
            results = self._handle_each(items)
            assert self._loop is not None
            with suppress(RuntimeError):  # the loop is closed, so no coroutine waits
                self._loop.call_soon_threadsafe(_resolve, futures, results)

    def _handle_each(self, items: Sequence[I]) -> Sequence[R | BaseException]:
        """Return the result or the exception of each item."""
        try:
            return self._handle(items)
        except Unavailable as error:  # the database does not answer: every item would wait for it
            return [error] * len(items)
        except BaseException as error:
            return [error] if len(items) == 1 else [self._handle_each([item])[0] for item in items]


def _resolve(futures: Sequence[asyncio.Future[Any]], results: Sequence[Any]) -> None:
    for future, result in zip(futures, results, strict=True):
        if future.done():
            continue  # its request was cancelled
        if isinstance(result, BaseException):
            future.set_exception(result)
        else:
            future.set_result(result)


class AgentBatches:
    """
    The batches of one process: agents report results, show that they are alive, and read their documents.

    - ``reports``: results of runs. The result is the status of the deployment.
    - ``heartbeats``: pairs of server id and agent header.
    - ``documents``: pairs of server id and whether the agent knows modes.
    - ``keys``: agents' keys that are not cached, as after a restart. The result is the server's id.
    """

    def __init__(self, store: Store, engine: Engine, last_seen: LastSeen, documents: Documents, keys: Keys) -> None:
        self._store = store
        self._engine = engine
        self._last_seen = last_seen
        self.reports = Batches("reports", self._apply)
        self.heartbeats = Batches[tuple[str, str], None]("heartbeats", self._write_heartbeats, size=500)
        self.documents = Batches("documents", documents.load_agents)
        self.keys = Batches[KeyRequest, str]("keys", keys.authenticate_all)

    def _apply(self, batch: Sequence[Report]) -> Sequence[str | EntityNotFound | None]:
        env, limit = self._engine.env, self._engine.limits.log_bytes
        return self._store.write(lambda tx: run_end.apply(tx, env, batch, limit))

    def _write_heartbeats(self, seen: Sequence[tuple[str, str]]) -> Sequence[None]:
        self._last_seen.write_all(seen)
        return [None] * len(seen)
