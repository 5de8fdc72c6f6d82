"""
HTTP/1.1 for one connection, with limits: uvicorn's httptools protocol has none.

Limited are the connections in total and for each client address, the bytes of a request's head, and the time of each
phase except the wait for the application's response. The server (``serve.http_server``) checks all deadlines regularly
and calls ``expire``, so a request needs no timer of its own. A client beyond a limit gets a status without a body.
"""

from __future__ import annotations

import asyncio
import math
import resource
import time
from typing import Any, cast

import httptools
import structlog
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from stoker.addresses import client_prefix
from stoker.settings import Settings

_log = structlog.get_logger("stoker.http")

#: File descriptors reserved for database connections, files and child processes.
_OWN_DESCRIPTORS = 256
#: Upper bound: more descriptors have no benefit, and some programs iterate over all descriptors that they may open.
_MOST_DESCRIPTORS = 1 << 20
#: An address with fewer connections than this may use the reserve.
_FEW = 8
#: Connections that may be refused with a response at the same time; further connections are reset.
_REFUSED = 64
#: Seconds between two log lines about refused connections.
_LOG_INTERVAL = 10.0
#: Limits of one head: bytes, bytes of the URL, and headers.
_MOST_HEAD = 64 * 1024
_MOST_URL = 16 * 1024
_MOST_HEADERS = 200
#: Requests that wait for the response of an earlier one: on one connection, and on all.
_MOST_PIPELINED = 128
_MOST_PIPELINED_IN_ALL = 8192
#: Bytes of a head besides method, URL and headers: two spaces, the version, and two ends of lines.
_FRAME = 14
_RETRY_SECONDS = b"5"

#: Phases of a connection: waiting for a request; receiving its head; receiving its body; waiting for the response;
#: waiting for the client to read the last bytes.
_IDLE, _HEAD, _BODY, _ANSWER, _CLOSING = range(5)


class ConnectionTable:
    """
    Counts connections by client address. Not thread-safe: used on the event loop only.

    ``max_connections_per_address`` = 0 in the settings means no limit per address. The last tenth of all connections is
    a reserve for addresses that have few connections, so that one address cannot lock out all others. Addresses that
    the settings declare as proxies have no limit of their own.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._most = _connection_limit()
        self._unreserved = self._most - max(1, self._most // 10)
        self._by_address: dict[str, int] = {}
        self._connections = 0
        self._refused = 0
        self._next_log = 0.0
        #: Requests of all connections that wait for the response of an earlier one.
        self.pipelined = 0

    def admit(self, host: str) -> str | None:
        """Count a connection from ``host`` and return the key for ``release``, or None if a limit is reached."""
        is_proxy = self._settings.is_proxy(host)
        key = host if is_proxy else client_prefix(host)
        of_address = self._by_address.get(key, 0)
        per_address = 0 if is_proxy else self._settings.max_connections_per_address
        if (
            self._connections >= (self._unreserved if of_address >= _FEW else self._most)
            or 0 < per_address <= of_address
        ):
            self._log_refusal(key)
            return None
        self._by_address[key] = of_address + 1
        self._connections += 1
        return key

    def may_answer(self, connections: int) -> bool:
        """Whether a refused connection may stay open until its response is sent, beside ``connections`` open ones."""
        return connections <= self._most + _REFUSED

    def release(self, key: str) -> None:
        """Undo ``admit`` for one closed connection."""
        self._connections -= 1
        self._by_address[key] -= 1
        if not self._by_address[key]:
            del self._by_address[key]

    def _log_refusal(self, key: str) -> None:
        """Log at most one line per interval, so that a flood of connections does not flood the log."""
        self._refused += 1
        now = time.monotonic()
        if now >= self._next_log:
            _log.warning(
                "connections.refused",
                address=key,
                refused=self._refused,
                connections=self._connections,
                most=self._most,
                max_connections_per_address=self._settings.max_connections_per_address,
            )
            self._next_log, self._refused = now + _LOG_INTERVAL, 0


def _connection_limit() -> int:
    """Raise the process's limit of open files, and return the connections that it permits."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = _MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    else:
        most = _MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft
    return max(most - _OWN_DESCRIPTORS, most // 2)


class _TimedProtocol(HttpToolsProtocol):
    """The phases of a connection, their deadlines, and its end."""

    # With these in its dictionary, Python would allocate a dictionary of its own keys for each connection: 1.2 KB.
    __slots__ = ("_phase", "_seconds", "_stalled", "_unread", "deadline")

    def __init__(self, seconds: float, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._seconds = seconds
        self._phase = _HEAD
        #: The end of the phase in the time of the event loop.
        self.deadline = math.inf
        #: Bytes that the client had not read at the previous check; -1 while writing is not paused.
        self._unread = -1
        #: Bytes received since the last complete head or part of a body.
        self._stalled = 0

    def on_message_complete(self) -> None:
        self._stalled = 0
        if self.cycle.response_complete:
            self._enter(_IDLE, 2 * self._seconds)
        else:
            self._enter(_ANSWER, math.inf)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            self._close()
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        elif self._phase == _ANSWER:
            self._enter(_IDLE, 2 * self._seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._phase != _CLOSING:
            self._unread = -1
            self._enter(self._phase, math.inf if self._phase == _ANSWER else self._seconds)

    def expire(self) -> None:
        """Handle an overdue phase: called by the server after the deadline has passed."""
        if self._unread >= 0:
            if 0 < self.transport.get_write_buffer_size() < self._unread:
                self._await_reader()
            else:
                self.transport.abort()
        elif self._phase == _BODY and self.flow.read_paused:
            self._enter(_BODY, self._seconds)  # the service is slow to read, not the client
        elif self._phase == _BODY or (self._phase == _HEAD and self._stalled):
            self._refuse(408)
        else:
            self._close()

    def end_unanswered(self) -> None:
        """Answer the current request with a 503 unless it has its response: the server stops."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._refuse(503)

    def _enter(self, phase: int, seconds: float) -> None:
        """Begin a phase. While the client does not read a response, only its reading extends the deadline."""
        self._phase = phase
        if self._unread < 0:
            self.deadline = self.loop.time() + seconds

    def _await_reader(self) -> None:
        """Set the deadline for the client to read some of the unsent bytes."""
        self._unread = self.transport.get_write_buffer_size()
        self.deadline = self.loop.time() + self._seconds

    def _refuse(self, status: int) -> None:
        """Send a status without a body and close the connection; reset it if an earlier response is unfinished."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started or self.pipeline:
                self.transport.abort()
                return
        retry = b"retry-after: %s\r\n" % _RETRY_SECONDS if status == 503 else b""
        self.transport.write(b"%sconnection: close\r\ncontent-length: 0\r\n%s\r\n" % (STATUS_LINE[status], retry))
        self._close()

    def _close(self) -> None:
        """Close once everything is written; the deadline limits the wait for a client that does not read."""
        self.transport.close()
        self._phase = _CLOSING
        self._await_reader()


class LimitedProtocol(_TimedProtocol):
    """
    One connection with all limits.

    The client has ``seconds`` for each phase, and twice as many between two requests. ``table`` counts all connections;
    ``uvicorn`` holds the arguments of uvicorn's own protocol.
    """

    __slots__ = ("_head_bytes", "_key", "_pipelined", "_refusal", "_table")

    def __init__(self, seconds: float, table: ConnectionTable, **uvicorn: Any) -> None:
        super().__init__(seconds, **uvicorn)
        self._table = table
        self._key: str | None = None
        #: Bytes of the current head's parsed parts.
        self._head_bytes = 0
        #: Requests of this connection that the table counts as pipelined.
        self._pipelined = 0
        #: The status for the error that a callback of the parser has raised.
        self._refusal = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._enter(_HEAD, self._seconds)
        self._key = self._table.admit(self.client[0] if self.client else "")
        if self._key is None:
            if self._table.may_answer(len(self.connections)):
                self._refuse(503)
            else:
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.pipelined -= self._pipelined
        self._pipelined = 0
        if self._key is not None:
            self._table.release(self._key)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase == _CLOSING:
            return
        self._stalled += len(data)
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # The request is answered as plain HTTP; the bytes after it belong to an unsupported protocol.
            self.cycle.keep_alive = False
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or (501 if isinstance(error, httptools.HttpParserInvalidMethodError) else 400))
            return
        self._count_pipelined()
        if self._table.pipelined > _MOST_PIPELINED_IN_ALL and self._pipelined:
            self._refuse(503)
        elif self._phase in (_HEAD, _BODY) and self._stalled > _MOST_HEAD:
            self._refuse(431)
        elif self._phase == _BODY:
            self._enter(_BODY, self._seconds)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._count_pipelined()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _MOST_PIPELINED:
            self._stop(400)
        self._head_bytes = _FRAME
        self._enter(_HEAD, self._seconds)
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > _MOST_URL:
            self._stop(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == _BODY:
            return  # a trailer: Stoker reads none
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value) + 4
        if len(self.headers) > _MOST_HEADERS:
            self._stop(431)

    def on_headers_complete(self) -> None:
        if self._head_bytes + len(self.parser.get_method()) + len(self.url) > _MOST_HEAD:
            self._stop(431)
        self._phase = _BODY
        self._stalled = 0
        super().on_headers_complete()
        # uvicorn only writes to the transport of a response, and closes it.
        self.cycle.transport = cast(asyncio.Transport, _ResponseWriter(self.transport, self.loop))

    def on_body(self, body: bytes) -> None:
        self._stalled = 0
        super().on_body(body)

    def _stop(self, status: int) -> None:
        """End the parser's work; called in its callbacks, whose exceptions it replaces."""
        self._refusal = status
        raise ValueError("the request is refused")

    def _count_pipelined(self) -> None:
        self._table.pipelined += len(self.pipeline) - self._pipelined
        self._pipelined = len(self.pipeline)


class _ResponseWriter:
    """
    The transport of one response. It writes the head with the first part of the body: one system call for both.

    The head is written alone if the event loop runs other calls before this part exists, as with a stream of events.
    """

    __slots__ = ("_has_begun", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._has_begun = False
        self._head = b""

    def write(self, data: bytes) -> None:
        if self._has_begun:
            head, self._head = self._head, b""
            self._send(head + data if head else data)
        else:
            self._has_begun, self._head = True, data
            self._loop.call_soon(self._flush)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._send(head)

    def _send(self, data: bytes) -> None:
        # uvloop raises RuntimeError for a connection that is lost, which its protocol learns only later.
        if not self._transport.is_closing():
            self._transport.write(data)
