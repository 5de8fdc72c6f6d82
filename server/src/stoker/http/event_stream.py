"""
Server-sent events: sends events over one open GET as they occur.

The streams of one subject share a feed in each process: it reads and encodes each event once. A stream that begins
later first catches up by itself, unless its events must not be repeated: then only streams that begin at the same
position share a feed. If a stream ends without the API's final event, the client reconnects with ``Last-Event-ID``.
This happens when the server stops, the stream reaches its maximum age, the client reads too slowly, or the token is no
longer valid. The route's access rule is applied before each page. Revoking a token, disabling a user or removing a role
wakes the streams. The first event of each stream, ``hello``, has the server's version.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from stoker import VERSION
from stoker.http.hold import Subscription, hold
from stoker.http.request import RequestContext, Response, Streamed
from stoker.http.threads import in_thread
from stoker.model.errors import EntityNotFound, StokerError
from stoker.store.notifier import ALL, TOKENS_TOPIC
from stoker.store.tx import Tx

if TYPE_CHECKING:
    from stoker.http.app import App

_MEDIA_TYPE = "text/event-stream"
#: A proxy that compresses a stream may also hold it back. A browser that stores a stream lets others wait for its end.
HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
#: Interval of empty comment lines, so that proxies do not close an idle connection.
_KEEP_ALIVE_SECONDS = 15.0
#: The shortest wait, after which the access rule is applied again: that of a stream whose token has just expired.
_SHORTEST_SECONDS = 0.1
_LONGEST_SECONDS = 3600.0
#: Pause between two reads of most readers, and for each stream that receives them: a read combines many notifications.
PAUSE_SECONDS, _PAUSE_PER_STREAM = 0.05, 0.004
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

    ``subject``, of a stream of several subjects, is sent as a member of ``data``, which must be an object.
    """

    name: str
    data: Any
    id: str | None = None
    subject: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one read. ``over``: no events follow. ``more``: further events are already available."""

    events: list[Event] = field(default_factory=list)
    over: bool = False
    more: bool = False


#: Characters of a subject's id in a cursor, enough for the subjects of one stream, and digits of a number.
_ID, _DIGITS = 12, 18


def parse_cursor(cursor: str, subjects: Iterable[str]) -> dict[str, str]:
    """
    Return the positions of subjects, such as ``trigger:<id>``, as far as the cursor contains them.

    A cursor, such as ``t0123456789ab_812.44,s0123456789ab_1203``, has a part for each subject: a name and the position,
    which only the subject's reader understands. Clients do not look into cursors.
    """
    parts = (part.rpartition("_") for part in cursor.split(","))
    positions = {name: position for name, _, position in parts}
    return {subject: positions[name] for subject in subjects if (name := _shorten(subject)) in positions}


def format_cursor(positions: Mapping[str, str]) -> str:
    """Return the cursor with the positions of these subjects."""
    return ",".join(f"{_shorten(subject)}_{position}" for subject, position in positions.items())


def _shorten(subject: str) -> str:
    noun, _, id = subject.partition(":")
    return noun[0] + id[:_ID]


def parse_number(text: str) -> int | None:
    """Return a number of a position; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


class Reader:
    """The position of a stream among the events of its subject."""

    #: Whether a repeated event changes nothing for a client, so that a stream may join the feed of another one.
    is_repeatable = True
    #: The shortest pause between two reads, in seconds.
    pause = PAUSE_SECONDS

    def __init__(self, kinds: Collection[str] = (), topics: Collection[str] = ()) -> None:
        """``kinds`` are the events that ``changes`` may return, ``topics`` those of ``topics``."""
        self._kinds = frozenset(kinds)
        self._topics = topics
        self._last: dict[str, Any] = {}

    def topics(self) -> Collection[str]:
        """Return the topics whose notifications announce further events; they may change with each read."""
        return self._topics

    def read(self, tx: Tx, notified: Collection[str] | None) -> Batch:
        """
        Return the next events, of which there are a bounded number. Runs on a thread.

        ``notified`` are the topics that were notified since the last read; None: any. Raises StokerError.
        """
        raise NotImplementedError

    def changes(self, name: str, state: Any) -> list[Event]:
        """Return the event ``name`` with the state; nothing if the stream has sent it, or sends no such events."""
        if name not in self._kinds or self._last.get(name) == state:
            return []
        self._last[name] = state
        return [Event(name, state)]


class Streams:
    """The feeds of this process. Use it on the event loop only."""

    def __init__(self) -> None:
        self.feeds: dict[tuple[str, str, str], Feed] = {}
        self.reads = asyncio.Semaphore(_READS)

    @contextmanager
    def follow(self, request: RequestContext, subject: str, after: str, reader: Reader) -> Iterator[Feed]:
        """
        Yield the feed of the subject, or of the subject and the position, for one stream.

        ``reader`` reads it if no other stream does.
        """
        key = (request.project, subject, "" if reader.is_repeatable else after)
        feed = self.feeds.get(key)
        if feed is None or feed.has_failed or not (reader.is_repeatable or feed.is_whole):
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
        """Whether the first page is still in memory."""
        return self._first == 0

    @property
    def has_failed(self) -> bool:
        """Whether a read has failed: the reader has lost its position."""
        return self._reading is not None and self._reading.done()

    @property
    def end(self) -> int:
        """The index of the next page."""
        return self._first + len(self._pages)

    def has_ended(self, index: int) -> bool:
        """Return whether no events follow the page before ``index``."""
        return self._last.over and index >= self.end

    async def read(self, index: int) -> tuple[bytes, bool]:
        """
        Return the page ``index``, after a read if anything was notified, and whether it is one; otherwise it is empty.

        Raises StokerError, and EntityNotFound if the page is no longer in memory.
        """
        while index == self.end and not self._last.over and (self._reading is not None or self._is_due()):
            if self._reading is None:
                self._reading = asyncio.create_task(self._read())
            await asyncio.shield(self._reading)  # also for the other streams, if this one ends
            if not self._last.more:
                break  # ``hold`` decides whether to read what was notified in the meantime
        if index < self._first:
            raise EntityNotFound("The client is too slow")
        return (self._pages[index - self._first], True) if index < self.end else (b"", self._last.over)

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
            data, self._last = await in_thread(_load, self._app, self._reader, None if is_complete else notified)
        self.subscription.watch((TOKENS_TOPIC, *self._reader.topics()))
        if data:
            self._pages.append(data)
            self._size += len(data)
        while self._size > _MOST_BYTES and len(self._pages) > 1:
            self._size -= len(self._pages.popleft())
            self._first += 1
        # In proportion to the duration, so that followers of large triggers do not use all CPU time.
        pause = max(self._reader.pause, _PAUSES_PER_READ * (time.monotonic() - began))
        self._rested_at = time.monotonic() + pause + _PAUSE_PER_STREAM * self.open
        self._reading = None  # not after an error: the reader has lost its position


def _load(app: App, reader: Reader, notified: Collection[str] | None) -> tuple[bytes, Batch]:
    """Return the encoded events of the next read, and its result without them."""
    with app.store.read() as tx:
        batch = reader.read(tx, notified)
    return b"".join(map(_encode, batch.events)), Batch(over=batch.over, more=batch.more)


async def reply(request: RequestContext, subject: str, after: str, reader: Reader) -> Response:
    """
    Return a response that streams the events of ``subject`` after the position ``after``.

    ``reader`` reads them, or what precedes the feed of other streams: all readers of a subject and a position return
    the same events. An exception of the first read becomes an ordinary error response; a later one ends the stream.
    Raises TooManyRequests.
    """
    with ExitStack() as stack:
        stack.enter_context(request.app.waiters.count_stream(request))
        feed = stack.enter_context(request.app.streams.follow(request, subject, after, reader))
        index, first = 0, (b"", Batch())
        if reader.is_repeatable and feed.open > 1:
            # The page at this index is read later than its predecessors, and the reader reads later than these.
            index, first = feed.end, await _catch_up(request.app, reader)
        else:
            await feed.read(0)
        leave = stack.pop_all().close
    chunks = _chunks(request, feed, index, reader, first)
    return Streamed(status=200, headers=HEADERS, media_type=_MEDIA_TYPE, chunks=chunks, leave=leave)


async def _catch_up(app: App, reader: Reader) -> tuple[bytes, Batch]:
    async with app.streams.reads:
        return await in_thread(_load, app, reader, None)


async def _chunks(
    request: RequestContext, feed: Feed, index: int, reader: Reader, first: tuple[bytes, Batch]
) -> AsyncIterator[bytes]:
    yield b"retry: 1000\n\n" + _encode(Event("hello", {"version": VERSION}))
    until = time.monotonic() + _LONGEST_SECONDS
    page, batch = first
    try:
        while page or batch.more:
            yield page
            page, batch = await _catch_up(request.app, reader) if batch.more else (b"", batch)
        while not (feed.has_ended(index) or request.app.waiters.closed or time.monotonic() > until):
            page = await hold(request, feed.subscription.topic, _patience(request), partial(feed.read, index))
            index += bool(page)
            yield page or b":\n\n"
    except StokerError:
        return  # the token has expired, the subject no longer exists, or the client is too slow


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
    id = b"" if event.id is None else b"id: %s\n" % event.id.encode()
    data = _encoder.encode(event.data)
    if event.subject is not None:
        data = b'{"subject":%s%s%s' % (_encoder.encode(event.subject), b"" if data == b"{}" else b",", data[1:])
    return id + b"event: %s\ndata: %s\n\n" % (event.name.encode(), data)
