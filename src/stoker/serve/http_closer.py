"""The end of an HTTP connection: the client gets the last response, unless it does not read."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from stoker.serve.http_phases import CLOSING, PhaseTimer
from stoker.serve.http_reader import RequestReader
from stoker.serve.http_refusal import Refusal, unavailable

#: Time and bytes that a refused client may still send before the connection is reset. An immediate reset could overtake
#: the response.
_CLOSING_SECONDS = 2.0
_CLOSING_BYTES = 1024 * 1024


class ConnectionCloser:
    """Closes the connection of ``protocol``. The client has ``read_seconds`` to read a part of what is unsent."""

    __slots__ = ("_discarded", "_protocol", "_read_seconds", "_reader", "_timer")

    def __init__(
        self, protocol: HttpToolsProtocol, timer: PhaseTimer, reader: RequestReader, read_seconds: float
    ) -> None:
        self._protocol = protocol
        self._timer = timer
        self._reader = reader
        self._read_seconds = read_seconds
        self._discarded = 0

    def close(self) -> None:
        """Close once everything is written; the deadline limits the wait for a client that does not read."""
        transport = self._protocol.transport
        transport.close()
        self._timer.phase = CLOSING
        self._timer.await_reader(transport.get_write_buffer_size(), self._read_seconds)

    def refuse(self, refusal: Refusal) -> None:
        """Send an error response, and close the connection after the client had time to read the response."""
        cycle, transport = self._protocol.cycle, self._protocol.transport
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                transport.abort()
                return
        self._write(refusal)
        self._timer.phase = CLOSING
        self._reader.discard()
        if transport.can_write_eof():
            transport.write_eof()
        self._protocol.flow.resume_reading()
        self._timer.arm(_CLOSING_SECONDS)

    def discard(self, size: int) -> None:
        """Ignore ``size`` bytes that came after the last request; abort the connection if they become too many."""
        self._discarded += size
        if self._discarded > _CLOSING_BYTES:
            self._protocol.transport.abort()

    def abort_unread(self) -> None:
        """Abort the connection unless the client has read a part of the response since the previous check."""
        before, now = self._timer.unsent, self._protocol.transport.get_write_buffer_size()
        if not 0 < now < before:
            self._protocol.transport.abort()
            return
        self._timer.resume(self._read_seconds)
        self._timer.unsent = now

    async def end_unanswered(self, cycle: RequestResponseCycle) -> None:
        """Answer a request that is cancelled because the server stops, and close the connection."""
        if not cycle.disconnected:
            self._write(unavailable("The server is stopping"))
        self._protocol.transport.close()

    def _write(self, refusal: Refusal) -> None:
        url = getattr(self._protocol, "url", None) or b"/"  # no attribute before the first request
        self._protocol.transport.write(refusal.to_bytes(url, self._protocol.server_state.default_headers))
