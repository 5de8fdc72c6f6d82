"""
Server-sent events: sends events over one open GET as they occur.

The streams of one subject that begin at the same position share a feed in each process: it reads and encodes each event
once. If a stream ends without the API's final event, the client reconnects with ``Last-Event-ID``. This happens when
the server stops, the stream reaches its maximum age, the client reads too slowly, or the token is no longer valid. The
route's access rule is applied before each page. Revoking a token, disabling a user or removing a role wakes the
streams.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from stoker.http.hold import Subscription, hold
from stoker.http.request import RequestContext, Response, Streamed
from stoker.http.threads import in_thread
from stoker.model.errors import EntityNotFound, StokerError
from stoker.store.notifier import ALL, TOKENS_TOPIC
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

_MEDIA_TYPE = "text/event-stream"
HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
#: Interval of empty comment lines, so that proxies do not close an idle connection.
_KEEP_ALIVE_SECONDS = 15.0
#: The shortest wait, after which the access rule is applied again: that of a stream whose token has just expired.
_SHORTEST_SECONDS = 0.1
_LONGEST_SECONDS = 3600.0
#: Pause between two reads, and for each stream that receives them: a read combines many notifications.
_PAUSE_SECONDS, _PAUSE_PER_STREAM = 0.05, 0.004
#: The pause after a read that takes long, as a multiple of the duration of the read.
_PAUSES_PER_READ = 4
#: Bytes of a feed in memory. A stream whose client is further behind ends.
_MOST_BYTES = 4 * 1024 * 1024
#: Reads of this process at a time, so that streams leave threads for other requests.
_READS = 4
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


class Reader(Protocol):
    """The position of a stream among the events of its subject."""

    def topics(self) -> Collection[str]:
        """Return the topics whose notifications announce further events; they may change with each read."""

    def read(self, tx: Tx, notified: Collection[str] | None) -> Batch:
        """
        Return the next events, of which there are a bounded number. Runs on a thread.

        ``notified`` are the topics that were notified since the last read; None: any. Raises StokerError.
        """


class Streams:
    """The feeds of this process. Use it on the event loop only."""

    def __init__(self) -> None:
        self.feeds: dict[tuple[str, str, int], Feed] = {}
        self.reads = asyncio.Semaphore(_READS)

    @contextmanager
    def follow(self, request: RequestContext, subject: str, after: int, reader: Reader) -> Iterator[Feed]:
        """
        Yield the feed of the subject and the position, for one stream.

        ``reader`` reads it if no other stream does.
        """
        key = (request.project, subject, after)
        feed = self.feeds.get(key)
        if feed is None or not feed.is_whole:
            feed = self.feeds[key] = Feed(request.app, reader)
        feed.open += 1
        try:
            yield feed
        finally:
            feed.open -= 1
            if not feed.open:
                feed.subscription.close()
                if self.feeds.get(key) is feed:
                    del self.feeds[key]


class Feed:
    """
    The events of one subject, which its reader reads and encodes once for all streams, page by page.

    A stream is an index into the pages. The first stream that has received all pages starts the next read, so a feed
    reads no faster than its fastest client.
    """

    def __init__(self, app: App, reader: Reader) -> None:
        self._app, self._reader = app, reader
        self.subscription = Subscription(app.waiters, (TOKENS_TOPIC, *reader.topics()))
        self._pages: deque[bytes] = deque()
        self._first = self._size = 0
        self._reading: asyncio.Task[None] | None = None
        self._last = Batch(more=True)
        #: When the next read may begin, and when the next one reads everything (time.monotonic).
        self._rested_at = self._complete_at = 0.0
        #: The number of open streams.
        self.open = 0

    @property
    def is_whole(self) -> bool:
        """Whether the first page is still in memory and no read has failed, so that a stream can begin."""
        return self._first == 0 and (self._reading is None or not self._reading.done())

    def has_ended(self, index: int) -> bool:
        """Return whether no events follow the page before ``index``."""
        return self._last.over and index >= self._end

    async def read(self, index: int) -> tuple[bytes, bool]:
        """
        Return the page ``index``, after a read if anything was notified, and whether it is one; otherwise it is empty.

        Raises StokerError, and EntityNotFound if the page is no longer in memory.
        """
        while index == self._end and not self._last.over and (self._reading is not None or self._is_due()):
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            await asyncio.shield(self._reading)  # also for the other streams, if this one ends
            if not self._last.more:
                break  # ``hold`` decides whether to read what was notified in the meantime
        if index < self._first:
            raise EntityNotFound("The client is too slow")
        return (self._pages[index - self._first], True) if index < self._end else (b"", self._last.over)

    @property
    def _end(self) -> int:
        """The index of the next page."""
        return self._first + len(self._pages)

    def _is_due(self) -> bool:
        """Return whether a read may find events."""
        return self._last.more or bool(self.subscription.notified) or time.monotonic() >= self._complete_at

    async def _read(self) -> None:
        if not self._last.more:
            await asyncio.sleep(max(0.0, self._rested_at - time.monotonic()))
        notified = self.subscription.take()
        async with self._app.streams.reads:
            began = time.monotonic()
            is_complete = ALL in notified or began >= self._complete_at
            if is_complete:
                self._complete_at = began + _KEEP_ALIVE_SECONDS
            data, self._last = await in_thread(self._load, None if is_complete else notified)
        self.subscription.watch((TOKENS_TOPIC, *self._reader.topics()))
        if data:
            self._pages.append(data)
            self._size += len(data)
        while self._size > _MOST_BYTES and len(self._pages) > 1:
            self._size -= len(self._pages.popleft())
            self._first += 1
        # In proportion to the duration, so that followers of large triggers do not use all CPU time.
        pause = max(_PAUSE_SECONDS, _PAUSES_PER_READ * (time.monotonic() - began))
        self._rested_at = time.monotonic() + pause + _PAUSE_PER_STREAM * self.open
        self._reading = None  # not after an error: the reader has lost its position

    def _load(self, notified: Collection[str] | None) -> tuple[bytes, Batch]:
        with self._app.store.read() as tx:
            batch = self._reader.read(tx, notified)
        return b"".join(map(_encode, batch.events)), Batch(over=batch.over, more=batch.more)


def is_wanted(request: RequestContext) -> bool:
    """Return whether the client accepts an event stream, for paths that also have another response."""
    return _MEDIA_TYPE in request.raw.headers.get("accept", "")


def last_id(request: RequestContext) -> int:
    """Return the id of the last event that the client received; 0 without a valid Last-Event-ID."""
    header = request.raw.headers.get("last-event-id", "")
    return int(header) if header.isascii() and header.isdecimal() and len(header) <= 18 else 0


async def reply(request: RequestContext, subject: str, after: int, reader: Reader) -> Response:
    """
    Return a response that streams the events of ``subject`` after the position ``after``.

    ``reader`` reads them if no other stream does: all readers of a subject and a position return the same events. An
    exception of the first read becomes an ordinary error response; a later one ends the stream. Raises TooManyRequests.
    """
    with ExitStack() as stack:
        stack.enter_context(request.app.waiters.count_request(request))
        feed = stack.enter_context(request.app.streams.follow(request, subject, after, reader))
        await feed.read(0)
        leave = stack.pop_all().close
    return Streamed(status=200, headers=HEADERS, media_type=_MEDIA_TYPE, chunks=_chunks(request, feed), leave=leave)


async def _chunks(request: RequestContext, feed: Feed) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n"
    index, until = 0, time.monotonic() + _LONGEST_SECONDS
    while not (feed.has_ended(index) or request.app.waiters.closed or time.monotonic() > until):
        try:
            page = await hold(request, feed.subscription.topic, _patience(request), partial(feed.read, index))
        except StokerError:
            return  # the token has expired, the subject no longer exists, or the client is too slow
        index += bool(page)
        yield page or b":\n\n"


def _patience(request: RequestContext) -> float:
    """
    Return the seconds until the next line: at most the keep-alive interval or the remaining lifetime of the token.
    """
    principal = request.caller.principal
    if principal is None:
        return _KEEP_ALIVE_SECONDS
    left = (principal.expires_at - request.app.store.clock.now()).total_seconds()
    return min(_KEEP_ALIVE_SECONDS, max(left, _SHORTEST_SECONDS))


def _encode(event: Event) -> bytes:
    id = b"" if event.id is None else b"id: %d\n" % event.id
    return id + b"event: %s\ndata: %s\n\n" % (event.name.encode(), _encoder.encode(event.data))
