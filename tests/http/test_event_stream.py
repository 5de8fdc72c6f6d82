"""The pace of event streams, and what the streams of one subject share."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import nullcontext
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from stoker.http import event_stream
from stoker.http.event_stream import Batch, Event, Streams
from stoker.http.hold import Waiters
from stoker.store.notifier import Notifier
from support.handler_requests import request_to

pytestmark = pytest.mark.anyio


class Log:
    """Numbers that are added by and by, of which a reader reads at most ``page`` at a time."""

    def __init__(self, count: int, page: int = 1000) -> None:
        self.notifier, self.numbers, self.page = Notifier(), list(range(count)), page
        self.is_over = False
        #: What each read was notified of, and when it was.
        self.reads: list[Collection[str] | None] = []
        self.times: list[float] = []

    def add(self, count: int = 1, *, over: bool = False) -> None:
        self.numbers += range(len(self.numbers), len(self.numbers) + count)
        self.is_over = over
        self.notifier.notify({"t": 0})


class LogReader:
    is_repeatable = False
    pause = event_stream.PAUSE_SECONDS

    def __init__(self, log: Log, after: int = 0) -> None:
        self.log, self.after = log, after

    def topics(self) -> Collection[str]:
        return ("t",)

    def read(self, _tx: object, notified: Collection[str] | None) -> Batch:
        self.log.reads.append(notified)
        self.log.times.append(time.monotonic())
        numbers = self.log.numbers[self.after : self.after + self.log.page]
        self.after += len(numbers)
        more = self.after < len(self.log.numbers)
        return Batch([Event("e", number) for number in numbers], self.log.is_over and not more, more)


def app_of(log: Log) -> Any:
    store = SimpleNamespace(read=nullcontext)
    return SimpleNamespace(waiters=Waiters(log.notifier), streams=Streams(), store=store)


async def open_stream(app: Any, reader: LogReader) -> Any:
    return await event_stream.reply(request_to(app, {"project": "p"}), "t", str(reader.after), reader)


def numbers_of(data: bytes) -> list[int]:
    events = re.findall(rb"event: e\ndata: (.*)\n", data)
    return [json.loads(number) for number in events]


async def receive(chunks: AsyncIterator[bytes], until: Callable[[list[int]], bool] = lambda _: False) -> list[int]:
    """The numbers that are sent, until the stream or the condition ends."""
    data = b""
    async for chunk in chunks:
        data += chunk
        if until(numbers_of(data)):
            break
    return numbers_of(data)


class Client:
    """A client that receives all numbers of a log, in a task."""

    def __init__(self, app: Any, log: Log) -> None:
        self.numbers: list[int] = []
        self.task = asyncio.create_task(self._receive(app, log))

    async def _receive(self, app: Any, log: Log) -> list[int]:
        reply = await open_stream(app, LogReader(log))
        try:
            return await receive(reply.chunks, self._note)
        finally:
            reply.leave()

    def _note(self, numbers: list[int]) -> bool:
        self.numbers = numbers
        return False


async def until_received(count: int, *clients: Client) -> None:
    """Wait until each client has received so many numbers."""
    async with asyncio.timeout(60):
        while any(len(client.numbers) < count for client in clients):
            await asyncio.sleep(0.001)


async def test_steady_output_is_read_with_pauses():
    log = Log(1)

    async def write() -> None:
        for number in range(40):
            await asyncio.sleep(0.01)
            log.add(over=number == 39)

    received, _ = await asyncio.gather(Client(app_of(log), log).task, write())
    assert received == log.numbers
    # The first is before anything is sent, and what comes next is looked for at once.
    between = [later - sooner for sooner, later in pairwise(log.times)]
    assert all(each > 0.9 * event_stream.PAUSE_SECONDS for each in between[1:])


async def test_full_pages_of_output_are_read_one_after_the_other(monkeypatch):
    monkeypatch.setattr(LogReader, "pause", 60.0)
    log = Log(100, page=10)
    log.is_over = True
    assert await Client(app_of(log), log).task == log.numbers


async def test_streams_of_one_subject_read_and_encode_a_change_once(monkeypatch):
    """A stream that begins later reads what the others have read."""
    monkeypatch.setattr(event_stream, "_KEEP_ALIVE_SECONDS", 3600.0)  # no read without a change
    log = Log(30, page=7)
    app = app_of(log)
    clients = [Client(app, log) for _ in range(15)]
    await until_received(30, *clients)
    reads = len(log.reads)
    clients.append(Client(app, log))
    await until_received(30, *clients)
    assert len(log.reads) == reads
    log.add(3)
    await until_received(33, *clients)
    assert 1 <= len(log.reads) - reads <= 2
    log.add(20, over=True)
    received = await asyncio.gather(*(client.task for client in clients))
    assert not app.streams.feeds
    assert received == [log.numbers] * 16


class StateReader(LogReader):
    is_repeatable = True


async def test_a_stream_joins_those_that_began_elsewhere():
    log = Log(30)
    app = app_of(log)
    streams = [await open_stream(app, StateReader(log, after)) for after in (0, 20, 25)]
    reads = len(log.reads)
    log.add(4, over=True)
    first, *others = [await receive(stream.chunks) for stream in streams]
    for stream in streams:
        stream.leave()
    assert others == [log.numbers[20:], log.numbers[25:]]
    assert not app.streams.feeds
    first, numbers, reads = first, log.numbers, len(log.reads) - reads
    assert (first, reads) == (numbers, 1)


async def test_a_client_that_is_too_slow_loses_its_stream_and_no_other_does(monkeypatch):
    monkeypatch.setattr(event_stream, "_MOST_BYTES", 200)
    log = Log(5)
    app = app_of(log)
    slow = await open_stream(app, LogReader(log))
    begin = await receive(slow.chunks, lambda numbers: len(numbers) >= 5)
    slow = await open_stream(app, LogReader(log))
    fast = Client(app, log)
    for count in range(5, 30, 5):
        await until_received(count, fast)
        log.add(5)
    late = Client(app, log)
    await until_received(30, fast, late)
    log.add(over=True)
    lost = await receive(slow.chunks)
    assert (begin, lost) == (list(range(5)), [])
    fast, late, numbers = await fast.task, await late.task, log.numbers
    assert fast == late == numbers


async def test_only_what_was_notified_is_read_after_the_beginning():
    log = Log(1)
    app = app_of(log)
    client = Client(app, log)
    await until_received(1, client)
    log.add(over=True)
    await client.task
    assert log.reads[0] is None
    assert set(map(str, map(sorted, filter(None, log.reads)))) == {"['t']"}


async def test_a_quiet_stream_is_kept_alive(monkeypatch):
    monkeypatch.setattr(event_stream, "_KEEP_ALIVE_SECONDS", 0.2)
    log = Log(1)
    reply = await open_stream(app_of(log), LogReader(log))
    lines = [await asyncio.wait_for(anext(reply.chunks), 60) for _ in range(4)]
    reply.leave()
    assert lines[2:] == [b":\n\n"] * 2


async def test_the_end_of_the_server_ends_a_stream():
    log = Log(1)
    app = app_of(log)
    client = Client(app, log)
    await until_received(1, client)
    app.waiters.close()
    assert await asyncio.wait_for(client.task, 60) == [0]


def test_an_event_names_its_subject():
    for data in ({}, {"a": 1}):
        sent = event_stream._encode(Event("changed", data, "7", "stacks")).decode()
        head, _, text = sent.partition("data: ")
        assert (head, json.loads(text)) == ("id: 7\nevent: changed\n", {"subject": "stacks", **data})
