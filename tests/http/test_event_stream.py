"""How often a stream reads: at once when there is more, and with pauses while there is always something."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from starlette.requests import Request

from stoker.http import event_stream
from stoker.http.event_stream import Batch, Event
from stoker.http.request_context import RequestContext
from stoker.http.stream_limits import StreamLimits
from stoker.http.waiters import Waiters
from stoker.store.notifier import Notifier


def followed(read: Callable[[], Batch], notifier: Notifier, topics: Callable[[], Any] = lambda: ("t",)) -> str:
    """All that is sent until there is nothing more to come."""

    async def collect() -> str:
        services: Any = SimpleNamespace(waiters=Waiters(notifier), streams=StreamLimits(1, 1))
        call = RequestContext(
            raw=Request({"type": "http", "headers": []}), body=b"", path={"project": "p"}, app=services
        )
        reply: Any = await event_stream.reply(call, topics, read)
        return b"".join([chunk async for chunk in reply.chunks]).decode()

    return asyncio.run(collect())


def paced(batches: list[Batch], topics: Callable[[], Any] = lambda: ("t",)) -> tuple[list[float], str]:
    """When each is read, while somebody writes all the time."""
    notifier, times = Notifier(), []

    def read() -> Batch:
        times.append(time.monotonic())
        notifier.notify("t", 0)
        return batches[len(times) - 1]

    said = followed(read, notifier, topics)
    return [later - sooner for sooner, later in pairwise(times)], said


def numbered(count: int, **last: Any) -> list[Batch]:
    return [Batch([Event("e", n)], **(last if n == count - 1 else {})) for n in range(count)]


def test_steady_output_is_read_with_pauses():
    between, said = paced(numbered(8, over=True))
    assert said.count("event: e") == 8
    # The first is before anything is sent, and what comes next is looked for at once.
    assert all(each > 0.9 * event_stream._PAUSE_SECONDS for each in between[1:])


def test_a_full_page_of_output_is_followed_by_the_next_one_at_once(monkeypatch):
    monkeypatch.setattr(event_stream, "_PAUSE_SECONDS", 3600.0)
    _, said = paced([*(Batch([Event("e", n)], more=True) for n in range(5)), Batch([Event("e", 5)], over=True)])
    assert said.count("event: e") == 6


def test_a_new_subscriber_reads_without_a_notification(monkeypatch):
    monkeypatch.setattr(event_stream, "_KEEP_ALIVE_SECONDS", 3600.0)
    notifier, count = Notifier(), 0

    def read() -> Batch:
        nonlocal count
        count += 1
        return Batch([Event("e", count)], over=count == 4)

    assert followed(read, notifier, lambda: [f"t{count}"]).count("event: e") == 4
