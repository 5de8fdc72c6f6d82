"""
HTTP/1.1 for one connection, with limits: uvicorn's httptools protocol has none.

``http_reader`` counts all received bytes before they are buffered, and parses requests one at a time. ``http_closer``
ends a connection. Every phase has a deadline (``http_phases``), except the wait for the application's response. The
server (``serve.http_server``) checks all deadlines regularly and calls ``expire``, so a request needs no timer of its
own.
"""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stoker.serve.connections import ConnectionTable, HttpLimits
from stoker.serve.http_closer import ConnectionCloser
from stoker.serve.http_connection import LightFlowControl, Pipeline, lighten
from stoker.serve.http_phases import ANSWER, BODY, CLOSING, HEAD, IDLE, PhaseTimer
from stoker.serve.http_reader import MAX_PIPELINED, RequestReader
from stoker.serve.http_refusal import Refusal, late, unavailable
from stoker.serve.http_response_writer import ResponseWriter

_quiet = logging.getLogger("stoker.http.stopping")
_quiet.disabled = True


class LimitedHttpProtocol(HttpToolsProtocol):
    """
    uvicorn's protocol with limits for sizes, times and connections.

    ``limits`` apply to this connection; ``table`` counts connections and buffered bytes of all of them; ``uvicorn``
    holds the arguments of uvicorn's own protocol.
    """

    # With these in its dictionary, Python would allocate a dictionary of its own keys for each connection: 1.2 KB.
    __slots__ = ("_closer", "_limits", "_reader", "_table", "timer")

    def __init__(self, limits: HttpLimits, table: ConnectionTable, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self.pipeline = Pipeline()  # type: ignore[assignment]  # uvicorn declares a deque, of which it uses these methods
        self._limits = limits
        self._table = table
        self.timer = PhaseTimer(self.loop)
        self._reader = RequestReader(self, self.timer, limits, table)
        self._closer = ConnectionCloser(self, self.timer, self._reader, limits.body_seconds)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self.flow = LightFlowControl(transport)
        self.timer.arm(self._limits.head_seconds)
        self._reader.address = self._table.admit(self.client[0] if self.client else "")
        if self._reader.address is not None:
            return
        if self._table.may_answer(len(self.connections)):
            self._closer.refuse(unavailable("There are too many connections"))
        else:
            self.timer.phase = CLOSING
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.discard()
        if self._reader.address is not None:
            self._table.release(self._reader.address)
            self._reader.address = None
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.timer.phase == CLOSING:
            self._closer.discard(len(data))
            return
        try:
            self._reader.feed(data)
        except Refusal as refusal:
            self._closer.refuse(refusal)

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        reader = self._reader
        if len(self.pipeline) >= MAX_PIPELINED:
            reader.stop(Refusal(400, "HTTPBadRequest", "Too many requests came before the first was answered"))
        reader.header_count = 0
        reader.body_left = None
        reader.framing_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.url += url
        most = self._limits.request_line_bytes
        if len(self.url) > most:
            self._reader.stop(Refusal(414, "RequestURITooLong", f"The URL is longer than {most} bytes"))

    def on_header(self, name: bytes, value: bytes) -> None:
        reader, most = self._reader, self._limits.headers
        reader.header_count += 1
        if reader.header_count > most:
            message = f"The request has more than {most} headers"
            reader.stop(Refusal(431, "RequestHeaderFieldsTooLarge", message))
        if self.timer.phase == BODY:
            return  # a trailer: Stoker reads none
        name = name.lower()
        if name == b"content-length" and value.isdigit():
            reader.body_left = int(value)
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.timer.phase = BODY
        self._reader.head_bytes = 0
        self._reader.is_head_timed = False
        before = self.cycle
        super().on_headers_complete()
        # uvicorn only writes to the transport of a response, and closes it.
        self.cycle.transport = cast(asyncio.Transport, ResponseWriter(self.transport, self.loop))
        if self.cycle is not before:
            lighten(self.cycle)  # its task has not begun yet

    def on_body(self, body: bytes) -> None:
        reader = self._reader
        reader.framing_bytes = 0
        if reader.body_left is not None:
            reader.body_left -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        if self.cycle.response_complete:
            self.timer.phase = IDLE
            self.timer.arm(self._limits.keep_alive_seconds)
        else:
            self.timer.phase = ANSWER
            self.timer.disarm()
        super().on_message_complete()

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
            cycle.send_500_response = partial(self._closer.end_unanswered, cycle)  # type: ignore[method-assign]  # no other hook

    def on_response_complete(self) -> None:
        self.server_state.total_requests += 1
        if self.timer.phase == CLOSING:
            return
        if self.transport.is_closing():
            self._closer.close()
            return
        if self.pipeline:
            cycle, app = self.pipeline.pop()
            self._start_asgi_task(cycle, app)
            if self.pipeline:
                return
        elif self.timer.phase == ANSWER:
            self.timer.phase = IDLE
            self.timer.arm(self._limits.keep_alive_seconds)
        self.flow.resume_reading()
        if self._reader.waiting:
            try:
                self._reader.feed_waiting()
            except Refusal as refusal:
                self._closer.refuse(refusal)

    def pause_writing(self) -> None:
        super().pause_writing()
        self.timer.await_reader(self.transport.get_write_buffer_size(), self._limits.body_seconds)

    def resume_writing(self) -> None:
        super().resume_writing()
        self.timer.resume(math.inf if self.timer.phase == ANSWER else self._limits.body_seconds)

    def expire(self) -> None:
        """Handle an overdue phase: called by the server after the deadline has passed."""
        phase = self.timer.phase
        if self.timer.unsent >= 0 or phase == CLOSING:
            self._closer.abort_unread()
        elif self._reader.waiting or (phase == BODY and self.flow.read_paused):
            self.timer.arm(self._limits.body_seconds)  # the service is slow to read, not the client
        elif phase == BODY:
            self._closer.refuse(late("body"))
        elif phase == HEAD and self._reader.head_bytes:
            self._closer.refuse(late("head"))
        else:
            self._closer.close()
