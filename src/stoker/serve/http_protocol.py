"""
HTTP/1.1 for one connection, with limits: uvicorn's httptools protocol has none.

All received bytes are counted before they are buffered. Requests of one connection are parsed one at a time: the bytes
after a request stay unparsed until the request is answered, and the protocol stops reading meanwhile. Every phase has a
deadline, except the wait for the application's response. The server (``serve.http_server``) checks all deadlines once a
second and calls ``expire``, so a request needs no timer of its own.
"""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial
from typing import Any

import httptools
from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from stoker.http import errors
from stoker.serve.connections import Address, ConnectionTable, HttpLimits

#: Phases: waiting for a request; receiving its head; receiving its body; waiting for the response; waiting for the
#: client to close the connection.
_IDLE, _HEAD, _BODY, _ANSWER, _CLOSING = range(5)
_HEAD_END = b"\r\n\r\n"
#: Bytes of a chunked body that are parsed at once. Bytes of the next request in the same piece are parsed too early.
_CHUNKED_PIECE = 1024
#: Requests that may be parsed too early: as many as fit into one piece.
_PIPELINED = _CHUNKED_PIECE // len(b"GET / HTTP/1.1\r\n\r\n")
#: Time and bytes that a refused client may still send before the connection is reset. An immediate reset could overtake
#: the response.
_CLOSING_SECONDS = 2.0
_CLOSING_BYTES = 1024 * 1024
_RETRY_SECONDS = "5"
_quiet = logging.getLogger("stoker.http.stopping")
_quiet.disabled = True


class _RefusedError(Exception):
    """Raised in the parser's callbacks with the reason for the refusal."""

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(message)
        self.status, self.kind, self.message = status, kind, message


class LimitedHttpProtocol(HttpToolsProtocol):
    """
    uvicorn's protocol with limits for sizes, times and connections.

    ``limits`` apply to this connection; ``table`` counts connections and buffered bytes of all of them; ``uvicorn``
    holds the arguments of uvicorn's own protocol.
    """

    def __init__(self, limits: HttpLimits, table: ConnectionTable, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.limits = limits
        self.table = table
        #: In the event loop's time; the phase decides what is overdue.
        self.deadline = math.inf
        self._address: Address | None = None
        self._phase = _HEAD
        #: Whether the deadline already applies to the current head: further pieces of the head do not extend it.
        self._is_head_timed = True
        self._head_bytes = 0
        self._header_count = 0
        #: Remaining bytes of the body; None for a chunked body.
        self._body_left: int | None = None
        #: Bytes of a chunked body since its last content bytes.
        self._framing_bytes = 0
        #: Bytes received after the current request; unparsed from ``_offset`` on.
        self._waiting = b""
        self._offset = 0
        #: The bytes that are counted in the table for this connection.
        self._buffered = 0
        #: Unsent bytes at the previous check; -1 while writing is not paused.
        self._unsent = -1
        self._discarded = 0
        self._refusal: _RefusedError | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._arm(self.limits.head_seconds)
        self._address = self.table.admit(self.client[0] if self.client else "")
        if self._address is not None:
            return
        if self.table.may_answer(len(self.connections)):
            self._refuse(503, "ServiceUnavailable", "There are too many connections", {"Retry-After": _RETRY_SECONDS})
        else:
            self._phase = _CLOSING
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._buffer(0)
        if self._address is not None:
            self.table.release(self._address)
            self._address = None
        self._waiting = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._phase == _CLOSING:
            self._discarded += len(data)
            if self._discarded > _CLOSING_BYTES:
                self.transport.abort()
            return
        if self._waiting:
            data = self._waiting[self._offset :] + data
            self._waiting = b""
        self._feed(data, 0)

    def _feed(self, data: bytes, start: int) -> None:
        """Parse ``data`` from ``start`` until a request waits for its response."""
        size, parser = len(data), self.parser
        while start < size and self._phase != _CLOSING:
            if self._phase == _ANSWER or self.pipeline:
                self._wait(data, start)
                return
            end = self._piece(data, start, size)
            if end < 0:
                return
            try:
                parser.feed_data(data if end - start == size else data[start:end])
            except httptools.HttpParserUpgrade:
                # The request is answered as plain HTTP; the bytes after it belong to an unsupported protocol.
                self.cycle.keep_alive = False
                return
            except httptools.HttpParserError as error:
                self._refuse_malformed(error, data[start:end])
                return
            start = end
        if self._phase == _HEAD:
            if not self._is_head_timed:
                self._is_head_timed = True
                self._arm(self.limits.head_seconds)
            self._buffer(self._head_bytes)
            return
        if self._phase == _BODY:
            self._arm(self.limits.body_seconds)
        if self._buffered:
            self._buffer(0)

    def _piece(self, data: bytes, start: int, size: int) -> int:
        """The end of the next piece to parse; -1 if the request was refused."""
        if self._phase == _BODY:
            if self._body_left:
                return min(size, start + self._body_left)
            end = min(size, start + _CHUNKED_PIECE)
            self._framing_bytes += end - start
            if self._framing_bytes <= self.limits.head_bytes:
                return end
            return self._refuse_head("chunk extensions and trailers", self.limits.head_bytes)
        self._phase = _HEAD
        position = data.find(_HEAD_END, start)
        end = size if position < 0 else position + len(_HEAD_END)
        self._head_bytes += end - start
        if self._head_bytes > self.limits.head_bytes:
            return self._refuse_head("request line and headers", self.limits.head_bytes)
        return end

    def _refuse_head(self, what: str, most: int) -> int:
        self._refuse(431, "RequestHeaderFieldsTooLarge", f"The request's {what} are longer than {most} bytes")
        return -1

    def _wait(self, data: bytes, start: int) -> None:
        """Keep the bytes after the current request unparsed and pause reading."""
        self._waiting, self._offset = data, start
        self._buffer(len(data) - start)
        if self._phase != _CLOSING:
            self.flow.pause_reading()

    def _buffer(self, size: int) -> None:
        """Count ``size`` buffered bytes for this connection; refuse the request if a limit is exceeded."""
        if size == self._buffered or self._address is None:
            return
        more, self._buffered = size - self._buffered, size
        if not self.table.buffer(self._address, more) and more > 0 and self._phase != _CLOSING:
            self._refuse(503, "ServiceUnavailable", "Too many requests are unfinished", {"Retry-After": _RETRY_SECONDS})

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= _PIPELINED:
            self._stop_parsing(400, "HTTPBadRequest", "Too many requests came before the first was answered")
        self._header_count = 0
        self._body_left = None
        self._framing_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.url += url
        if len(self.url) > self.limits.request_line_bytes:
            most = self.limits.request_line_bytes
            self._stop_parsing(414, "RequestURITooLong", f"The URL is longer than {most} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_count += 1
        if self._header_count > self.limits.headers:
            most = self.limits.headers
            self._stop_parsing(431, "RequestHeaderFieldsTooLarge", f"The request has more than {most} headers")
        if self._phase == _BODY:
            return  # a trailer: Stoker reads none
        name = name.lower()
        if name == b"content-length" and value.isdigit():
            self._body_left = int(value)
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._head_bytes = 0
        self._is_head_timed = False
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        if self._body_left is not None:
            self._body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.cycle.response_complete:
            self._phase = _IDLE
            self._arm(self.limits.keep_alive_seconds)
        else:
            self._phase = _ANSWER
            if self._unsent < 0:
                self.deadline = math.inf
        super().on_message_complete()

    def _stop_parsing(self, status: int, kind: str, message: str) -> None:
        """Keep the reason here, because the parser does not pass on exceptions of its callbacks."""
        self._refusal = _RefusedError(status, kind, message)
        raise self._refusal

    # Responses

    def shutdown(self) -> None:
        """
        Stop the connection with the server: an unanswered request is cancelled at the end of the grace period.

        The request gets a 503. uvicorn would log a traceback and answer 500.
        """
        super().shutdown()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.logger = _quiet
            cycle.send_500_response = partial(self._end_unanswered, cycle)  # type: ignore[method-assign]  # no other hook

    async def _end_unanswered(self, cycle: RequestResponseCycle) -> None:
        if not cycle.disconnected:
            self._write(503, "ServiceUnavailable", "The server is stopping", {"Retry-After": _RETRY_SECONDS})
        self.transport.close()

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self._phase == _CLOSING:
            return
        if self.transport.is_closing():
            self._close()
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            if self.pipeline:
                return
        elif self._phase == _ANSWER:
            self._phase = _IDLE
            self._arm(self.limits.keep_alive_seconds)
        self.flow.resume_reading()
        if self._waiting:
            data, self._waiting = self._waiting, b""
            self._feed(data, self._offset)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._arm(self.limits.body_seconds)
        self._unsent = self.transport.get_write_buffer_size()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unsent = -1
        self._arm(math.inf if self._phase == _ANSWER else self.limits.body_seconds)

    # Deadlines

    def expire(self) -> None:
        """Handle an overdue phase: called by the server after the deadline has passed."""
        if self._unsent >= 0 or self._phase == _CLOSING:
            self._abort_unread()
        elif self._waiting or (self._phase == _BODY and self.flow.read_paused):
            self._arm(self.limits.body_seconds)  # the service is slow to read, not the client
        elif self._phase == _BODY:
            self._refuse(408, "RequestTimeout", "The request's body did not come in time")
        elif self._phase == _HEAD and self._head_bytes:
            self._refuse(408, "RequestTimeout", "The request's head did not come in time")
        else:
            self._close()

    def _abort_unread(self) -> None:
        """Abort the connection unless the client has read a part of the response since the previous check."""
        before, now = self._unsent, self.transport.get_write_buffer_size()
        if not 0 < now < before:
            self.transport.abort()
            return
        self._unsent = now
        self.deadline = self.loop.time() + self.limits.body_seconds

    def _arm(self, seconds: float) -> None:
        """Set the deadline. Has no effect while the client does not read: only reading extends that deadline."""
        if self._unsent < 0:
            self.deadline = self.loop.time() + seconds

    def _close(self) -> None:
        """Close once everything is written; the deadline limits the wait for a client that does not read."""
        self.transport.close()
        self._phase = _CLOSING
        self._arm(self.limits.body_seconds)
        self._unsent = self.transport.get_write_buffer_size()

    # Refusals

    def _refuse_malformed(self, error: httptools.HttpParserError, piece: bytes) -> None:
        refusal, self._refusal = self._refusal, None
        words = piece.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
        if refusal is not None:
            self._refuse(refusal.status, refusal.kind, refusal.message)
        elif isinstance(error, httptools.HttpParserInvalidMethodError) and len(words) == 3:
            self.url = words[1].encode("ascii", "replace")
            self._refuse(501, "HTTPNotImplemented", f"There is no method {words[0][:100]!r}")
        else:
            self._refuse(400, "HTTPBadRequest", f"This is not a request in HTTP/1.1: {error}")

    def _refuse(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Send an error response, and close the connection after the client had time to read the response."""
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.abort()
                return
        self._write(status, kind, message, headers)
        self._waiting = b""
        self._phase = _CLOSING
        self._buffer(0)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.flow.resume_reading()
        self._arm(_CLOSING_SECONDS)

    def _write(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        """Write a complete error response in the format of the requested API, if the path is known."""
        path = (getattr(self, "url", None) or b"/").partition(b"?")[0].decode("ascii", "replace")
        response: Response = errors.reply(path, status, kind, message, headers).to_starlette()
        lines = [*self.server_state.default_headers, *response.raw_headers, (b"connection", b"close")]
        head = b"".join(b"%s: %s\r\n" % line for line in lines)
        self.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[status], head, response.body))
