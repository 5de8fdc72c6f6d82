"""A line between programs of this machine that tests cut, delay, or leave half-open, and that loses connections."""

from __future__ import annotations

import asyncio
import contextlib
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from support.ports import free_port

_CHUNK = 65536


class _Link:
    """One forwarded connection."""

    def __init__(self, near: asyncio.StreamWriter, far: asyncio.StreamWriter) -> None:
        self.ends = (near, far)
        #: Cleared while the connection is half-open: its data is kept, and neither end is informed.
        self.flows = asyncio.Event()
        self.flows.set()

    def cut(self) -> None:
        """Reset both connections."""
        self.flows.set()
        for end in self.ends:
            end.transport.abort()


class FaultyLine:
    """
    Forwards connections from ``port`` to the port ``target`` of this machine.

    The line cuts the share ``loss`` of its connections early: often after the request has arrived, before its answer.

    The kernel acknowledges what a half-open connection receives, as a proxy does that has lost its server. Keepalives
    of TCP therefore do not find it.
    """

    def __init__(self, target: int, loss: float = 0) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.target = target
        self._loss = loss
        self._delay = 0.0
        self._links: set[_Link] = set()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """The number of connections."""
        return len(self._links)

    def come(self) -> None:
        """Accept connections."""
        self._run(self._listen())

    def go(self) -> None:
        """Accept no connections, and reset the open ones."""
        self._run(self._close())

    def cut(self) -> None:
        """Reset the open connections. New ones work."""
        self._call(lambda: [link.cut() for link in self._links])

    def hold(self) -> None:
        """Leave the open connections half-open. New ones work."""
        self._call(lambda: [link.flows.clear() for link in self._links])

    def cut_held(self) -> None:
        """Reset the half-open connections."""
        self._call(lambda: [link.cut() for link in self._links if not link.flows.is_set()])

    def resume(self) -> None:
        """Deliver what half-open connections kept."""
        self._call(lambda: [link.flows.set() for link in self._links])

    def delay(self, seconds: float) -> None:
        """Deliver each answer of the server later."""
        self._delay = seconds

    def end(self) -> None:
        """Stop for ever."""
        self.go()
        self._run(self._cancel())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def _call(self, do: Callable[[], object]) -> None:
        async def work() -> None:
            do()

        self._run(work())

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=1024)

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for link in self._links:
            link.cut()

    async def _cancel(self) -> None:
        """End what still serves connections."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        try:
            far_reader, far = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:  # the server is away
            near.transport.abort()
            return
        link = _Link(near, far)
        self._links.add(link)
        limit = random.randrange(300) if random.random() < self._loss else None
        try:
            await asyncio.gather(
                self._forward(link, reader, far, is_answer=False),
                self._forward(link, far_reader, near, is_answer=True, limit=limit),
            )
        finally:
            self._links.discard(link)
            link.cut()

    async def _forward(
        self,
        link: _Link,
        source: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        is_answer: bool,
        limit: int | None = None,
    ) -> None:
        """Forward one direction. The connection is cut after ``limit`` bytes."""
        with contextlib.suppress(OSError):
            while data := await source.read(_CHUNK):
                await link.flows.wait()
                if is_answer and self._delay:
                    await asyncio.sleep(self._delay)
                target.write(data[:limit])
                await target.drain()
                if limit is not None and (limit := limit - len(data)) <= 0:
                    link.cut()
        await link.flows.wait()
        with contextlib.suppress(OSError):
            await target.drain()
            target.close()


@contextmanager
def faulty_line(target: int, loss: float = 0) -> Iterator[FaultyLine]:
    """Yield a line that accepts connections."""
    line = FaultyLine(target, loss)
    try:
        line.come()
        yield line
    finally:
        line.end()
