"""
Server-sent events: sends events over one open GET as they occur.

``reply`` calls ``read`` for new events whenever one of the topics is notified. If a stream ends without the API's final
event, the client reconnects with ``Last-Event-ID``. This happens when the server stops, the stream reaches its maximum
age, or the token is no longer valid. The route's access rule is applied before each read. Revoking a token, disabling a
user or removing a role wakes the streams.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.responses import Response as StarletteResponse
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from stoker.http.request_context import RequestContext, Response
from stoker.model.errors import StokerError
from stoker.store.notifier import TOKENS_TOPIC

_MEDIA_TYPE = "text/event-stream"
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
#: Interval of empty comment lines, so that proxies do not close an idle connection.
_KEEP_ALIVE_SECONDS = 15.0
_LONGEST_SECONDS = 3600.0
#: Pause between two reads: a stream combines many notifications into one read.
_PAUSE_SECONDS = 0.05
#: The pause after a read that takes long, as a multiple of the duration of the read.
_PAUSES_PER_READ = 4
_encoder = msgspec.json.Encoder()


@dataclass(frozen=True, slots=True)
class Event:
    """
    One server-sent event. ``data`` is sent as JSON; ``id`` is the position from which a reconnecting client continues.
    """

    name: str
    data: Any
    id: int | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one read. ``over``: no events follow. ``more``: further events are already available."""

    events: list[Event] = field(default_factory=list)
    over: bool = False
    more: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Streamed(Response):
    chunks: AsyncIterator[bytes]
    leave: Callable[[], None]

    def to_starlette(self) -> StarletteResponse:
        return _Response(self)


class _Response(StreamingResponse):
    """
    Requests the next chunk after the previous one is written, and releases its place in ``StreamLimits`` at the end.
    """

    def __init__(self, streamed: _Streamed) -> None:
        super().__init__(streamed.chunks, streamed.status, dict(streamed.headers), media_type=_MEDIA_TYPE)
        self._leave = streamed.leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._leave()


def is_wanted(request: RequestContext) -> bool:
    """Return whether the client accepts an event stream, for paths that also have another response."""
    return _MEDIA_TYPE in request.raw.headers.get("accept", "")


def last_id(request: RequestContext) -> int:
    """Return the id of the last event that the client received; 0 without a valid Last-Event-ID."""
    header = request.raw.headers.get("last-event-id", "")
    return int(header) if header.isascii() and header.isdecimal() and len(header) <= 18 else 0


async def reply(request: RequestContext, topics: Callable[[], Collection[str]], read: Callable[[], Batch]) -> Response:
    """
    Return a response that streams the events that ``read`` returns.

    ``read`` runs on a thread and returns a bounded number of events since its previous call. While it reports ``more``,
    it is called again as soon as the client has received the previous batch. A slow client therefore holds only one
    batch in memory. ``topics`` may return different topics after each read. An exception of the first read becomes an
    ordinary error response; a later one ends the stream. Raises TooManyRequests.
    """
    leave = request.app.streams.enter(request)
    try:
        first = await request.in_thread(read)
    except BaseException:
        leave()
        raise
    return _Streamed(status=200, headers=_HEADERS, chunks=_chunks(request, topics, read, first), leave=leave)


async def _chunks(
    request: RequestContext, topics: Callable[[], Collection[str]], read: Callable[[], Batch], first: Batch
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    batch, end = first, time.monotonic() + _LONGEST_SECONDS
    waiters = request.app.waiters
    if batch.events:
        yield _encode(batch)
    while not (batch.over or waiters.closed or time.monotonic() > end):
        subscribed = frozenset((TOKENS_TOPIC, *topics()))
        with waiters.register(*subscribed) as waiter:
            try:
                await request.authorize_again()
                began = time.monotonic()
                batch = await request.in_thread(read)
            except StokerError:
                return  # the token has expired, or the subject of the stream no longer exists
            # In proportion to the duration, so that followers of large triggers do not use all CPU time.
            rested = time.monotonic() + max(_PAUSE_SECONDS, _PAUSES_PER_READ * (time.monotonic() - began))
            if batch.events:
                yield _encode(batch)
            if batch.over or batch.more:
                continue
            # A topic that is new after the read may have been notified before it was registered: read again.
            notified = not subscribed.issuperset(topics()) or await waiter.wait(_patience(request))
        if not notified:
            yield b":\n\n"
        await asyncio.sleep(max(0.0, rested - time.monotonic()))


def _patience(request: RequestContext) -> float:
    """
    Return the seconds until the next line: at most the keep-alive interval or the remaining lifetime of the token.
    """
    if request.principal is None:
        return _KEEP_ALIVE_SECONDS
    left = (request.principal.expires_at - request.app.store.clock.now()).total_seconds()
    return min(_KEEP_ALIVE_SECONDS, max(left, 0.0))


def _encode(batch: Batch) -> bytes:
    return b"".join(_event(event) for event in batch.events)


def _event(event: Event) -> bytes:
    id = b"" if event.id is None else b"id: %d\n" % event.id
    return id + b"event: %s\ndata: %s\n\n" % (event.name.encode(), _encoder.encode(event.data))
