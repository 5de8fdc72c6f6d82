"""The phases of an HTTP connection and their deadlines."""

from __future__ import annotations

import asyncio
import math

#: Phases: waiting for a request; receiving its head; receiving its body; waiting for the response; waiting for the
#: client to close the connection.
IDLE, HEAD, BODY, ANSWER, CLOSING = range(5)


class PhaseTimer:
    """
    The phase of one connection, and its deadline in the time of ``loop``.

    While the client does not read a response, only its reading extends the deadline.
    """

    __slots__ = ("_loop", "deadline", "phase", "unsent")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.phase = HEAD
        self.deadline = math.inf
        #: Unsent bytes at the previous check; -1 while writing is not paused.
        self.unsent = -1

    def arm(self, seconds: float) -> None:
        """Set the deadline. Has no effect while the client does not read."""
        if self.unsent < 0:
            self.deadline = self._loop.time() + seconds

    def disarm(self) -> None:
        """Remove the deadline. Has no effect while the client does not read."""
        if self.unsent < 0:
            self.deadline = math.inf

    def await_reader(self, unsent: int, seconds: float) -> None:
        """Set the deadline for the client to read some of the ``unsent`` bytes."""
        self.arm(seconds)
        self.unsent = unsent

    def resume(self, seconds: float) -> None:
        """Set the deadline after the client has read."""
        self.unsent = -1
        self.arm(seconds)
