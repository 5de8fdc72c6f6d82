"""
Server-sent events: what happens, as it happens, over one GET that stays open.

``reply`` asks ``read`` for what is new whenever one of the topics is rung, and sends it. A stream that ends without the
event that its face calls the last one is to be asked for again, with ``Last-Event-ID``: the server was stopped, or the
stream was as old as one may get, so that nobody's access outlives an hour unasked.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from stoker.http.call import Call, Reply
from stoker.model.errors import StokerError

_MEDIA_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
#: A line that means nothing goes out so often: whoever is in between does not think that nobody is there.
_KEEP_ALIVE_SECONDS = 15.0
_LONGEST_SECONDS = 3600.0
#: From one reading to the next: of a thousand rings a second few are read for.
_PAUSE_SECONDS = 0.05
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Event:
    """``data`` goes out as JSON. ``id``: where a stream that is asked for again goes on."""

    name: str
    data: Any
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """What was found. ``over``: nothing comes after these. ``more``: there is more already than one reading gives."""

    events: list[Event] = field(default_factory=list)
    over: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Streamed(Reply):
    chunks: AsyncIterator[bytes]

    def response(self) -> Response:
        return StreamingResponse(self.chunks, self.status, dict(self.headers), media_type=_MEDIA_TYPE)


def is_wanted(call: Call) -> bool:
    """Whether this request is for a stream, where the same path has another answer too."""
    return _MEDIA_TYPE in call.request.headers.get("accept", "")


def last_id(call: Call) -> int:
    """Of the event that the client saw last; 0 when it saw none."""
    said = call.request.headers.get("last-event-id", "")
    return int(said) if said.isascii() and said.isdecimal() and len(said) <= 18 else 0


async def reply(call: Call, topics: Callable[[], Collection[str]], read: Callable[[], Batch]) -> Reply:
    """
    ``read`` runs in a thread and gives what came since it was called last, a bounded number of events; it is called
    again at once while there is ``more``. ``topics`` may be others after each reading. What ``read`` raises the first
    time is an ordinary answer; later it ends the stream.
    """
    first = await call.in_thread(read)
    return _Streamed(status=200, headers=_HEADERS, chunks=_chunks(call, topics, read, first))


async def _chunks(
    call: Call, topics: Callable[[], Collection[str]], read: Callable[[], Batch], first: Batch
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    batch, end = first, time.monotonic() + _LONGEST_SECONDS
    waiters = call.services.waiters
    if batch.events:
        yield _written(batch)
    while not (batch.over or waiters.closed or time.monotonic() > end):
        heard = frozenset(topics())
        with waiters.register(*heard) as waiter:
            try:
                batch = await call.in_thread(read)
            except StokerError:
                return  # what it was about is gone
            rested = time.monotonic() + _PAUSE_SECONDS
            if batch.events:
                yield _written(batch)
            if batch.over or batch.more:
                continue
            # One that has just come to be heard of may have rung before: it is read for once more.
            rung = not heard.issuperset(topics()) or await waiter.wait(_KEEP_ALIVE_SECONDS)
        if not rung:
            yield b":\n\n"
        await asyncio.sleep(max(0.0, rested - time.monotonic()))


def _written(batch: Batch) -> bytes:
    return b"".join(_event(each) for each in batch.events)


def _event(event: Event) -> bytes:
    id = b"" if event.id is None else b"id: %d\n" % event.id
    return id + b"event: %s\ndata: %s\n\n" % (event.name.encode(), _encoder.encode(event.data))
