"""Writes the head of a response together with the beginning of its body: one system call and one packet for both."""

from __future__ import annotations

import asyncio


class ResponseWriter:
    """
    The transport of one response, which uvicorn first gives the head, then the parts of the body.

    The head is written with the first part, or alone if the event loop runs other calls before this part exists, as
    with a stream of events.
    """

    __slots__ = ("_has_begun", "_head", "_loop", "_transport")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._has_begun = False
        self._head = b""

    def write(self, data: bytes) -> None:
        """Write the head (first call) or a part of the body."""
        if not self._has_begun:
            self._has_begun, self._head = True, data
            self._loop.call_soon(self._flush)
        elif self._head:
            head, self._head = self._head, b""
            self._transport.write(head + data)
        else:
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection after everything is written."""
        self._flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Return whether the connection is closing."""
        return self._transport.is_closing()

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)
