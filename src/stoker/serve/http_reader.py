"""
The receiving side of an HTTP connection: bytes are counted before they are parsed or buffered.

Requests of one connection are parsed one at a time: the bytes after a request stay unparsed until the request is
answered, and the connection stops reading meanwhile.
"""

from __future__ import annotations

from typing import NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from stoker.serve.connections import Address, ConnectionTable, HttpLimits
from stoker.serve.http_phases import ANSWER, BODY, CLOSING, HEAD, PhaseTimer
from stoker.serve.http_refusal import Refusal, malformed, unavailable

_HEAD_END = b"\r\n\r\n"
#: Bytes of a chunked body that are parsed at once. Bytes of the next request in the same piece are parsed too early.
_CHUNKED_PIECE = 1024
#: Requests that may be parsed too early: as many as fit into one piece.
MAX_PIPELINED = _CHUNKED_PIECE // len(b"GET / HTTP/1.1\r\n\r\n")


class RequestReader:
    """
    Passes the bytes that one connection receives to the parser of ``protocol``.

    The callbacks of the parser keep the public counters of the current request up to date. ``table`` counts the
    buffered bytes of all connections.
    """

    __slots__ = (
        "_buffered",
        "_limits",
        "_offset",
        "_protocol",
        "_refusal",
        "_table",
        "_timer",
        "address",
        "body_left",
        "framing_bytes",
        "head_bytes",
        "header_count",
        "is_head_timed",
        "waiting",
    )

    def __init__(
        self, protocol: HttpToolsProtocol, timer: PhaseTimer, limits: HttpLimits, table: ConnectionTable
    ) -> None:
        self._protocol = protocol
        self._timer = timer
        self._limits = limits
        self._table = table
        #: The client's counters in the table; None before the connection is admitted.
        self.address: Address | None = None
        #: Whether the deadline already applies to the current head: further pieces of the head do not extend it.
        self.is_head_timed = True
        self.head_bytes = 0
        self.header_count = 0
        #: Remaining bytes of the body; None for a chunked body.
        self.body_left: int | None = None
        #: Bytes of a chunked body since its last content bytes.
        self.framing_bytes = 0
        #: Bytes received after the current request, until it is answered; unparsed from ``_offset`` on.
        self.waiting = b""
        self._offset = 0
        #: The bytes that are counted in the table for this connection.
        self._buffered = 0
        self._refusal: Refusal | None = None

    def feed(self, data: bytes, start: int = 0) -> None:
        """Parse ``data`` from ``start`` until a request waits for its response. Raises Refusal."""
        if self.waiting:
            data = self.waiting[self._offset :] + data
            self.waiting = b""
        size, timer, protocol = len(data), self._timer, self._protocol
        while start < size and timer.phase != CLOSING:
            if timer.phase == ANSWER or protocol.pipeline:
                self._wait(data, start)
                return
            end = self._end_of_piece(data, start, size)
            try:
                protocol.parser.feed_data(data if end - start == size else data[start:end])
            except httptools.HttpParserUpgrade:
                # The request is answered as plain HTTP; the bytes after it belong to an unsupported protocol.
                protocol.cycle.keep_alive = False
                return
            except httptools.HttpParserError as error:
                raise self._explain(error, data[start:end]) from None
            start = end
        if timer.phase == HEAD:
            if not self.is_head_timed:
                self.is_head_timed = True
                timer.arm(self._limits.head_seconds)
            self._buffer(self.head_bytes)
            return
        if timer.phase == BODY:
            timer.arm(self._limits.body_seconds)
        if self._buffered:
            self._buffer(0)

    def feed_waiting(self) -> None:
        """Parse the bytes that waited for a response. Raises Refusal."""
        data, self.waiting = self.waiting, b""
        self.feed(data, self._offset)

    def stop(self, refusal: Refusal) -> NoReturn:
        """Make ``feed`` raise ``refusal``; called in the parser's callbacks, whose exceptions the parser replaces."""
        self._refusal = refusal
        raise refusal

    def discard(self) -> None:
        """Discard all buffered bytes."""
        self.waiting = b""
        self._buffer(0)

    def _end_of_piece(self, data: bytes, start: int, size: int) -> int:
        """Return the end of the next piece to parse, after counting its bytes."""
        most = self._limits.head_bytes
        if self._timer.phase == BODY:
            if self.body_left:
                return min(size, start + self.body_left)
            end = min(size, start + _CHUNKED_PIECE)
            self.framing_bytes += end - start
            if self.framing_bytes > most:
                raise _too_long("chunk extensions and trailers", most)
            return end
        self._timer.phase = HEAD
        position = data.find(_HEAD_END, start)
        end = size if position < 0 else position + len(_HEAD_END)
        self.head_bytes += end - start
        if self.head_bytes > most:
            raise _too_long("request line and headers", most)
        return end

    def _wait(self, data: bytes, start: int) -> None:
        """Keep the bytes after the current request unparsed and pause reading."""
        self.waiting, self._offset = data, start
        self._buffer(len(data) - start)
        self._protocol.flow.pause_reading()

    def _buffer(self, size: int) -> None:
        """Count ``size`` buffered bytes for this connection."""
        if size == self._buffered or self.address is None:
            return
        more, self._buffered = size - self._buffered, size
        if not self._table.buffer(self.address, more) and more > 0:
            raise unavailable("Too many requests are unfinished")

    def _explain(self, error: httptools.HttpParserError, piece: bytes) -> Refusal:
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            return refusal
        request_line = piece.partition(b"\r\n")[0].decode("ascii", "replace").split(" ")
        refusal = malformed(error, request_line)
        if refusal.status == 501:  # the parser has not reached the URL, which decides the format of the response
            self._protocol.url = request_line[1].encode("ascii", "replace")
        return refusal


def _too_long(part: str, most: int) -> Refusal:
    return Refusal(431, "RequestHeaderFieldsTooLarge", f"The request's {part} are longer than {most} bytes")
