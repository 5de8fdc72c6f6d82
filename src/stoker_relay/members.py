"""Agents that poll their documents at the relay."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field

from stoker_relay.centre import Answer

#: Seconds for which an agent stays in its shared poll between two of its own polls.
_GRACE_SECONDS = 10.0
#: Seconds after its last poll until an agent, with its document, is forgotten.
_FORGET_SECONDS = 300.0
#: Seconds that an agent waits after another poll with its key has superseded its own, as at the central Stoker.
SUPERSEDED = Answer(304, {"retry-after": "10"})


@dataclass(slots=True, eq=False)
class Member:
    """An agent, in memory only. ``etag`` is that of its last poll, ``agent`` its header X-Stoker-Agent."""

    key: str
    etag: str | None = None
    agent: str = ""
    #: The agent's number in its session.
    number: int = 0
    #: The ETag and the header that the session at the central Stoker has; None: the session does not have the agent.
    known_poll: tuple[str | None, str] | None = None
    #: Whether shared polls include the agent.
    is_active: bool = False
    #: The answer that the agent's open poll waits for.
    waiting: asyncio.Future[Answer] | None = None
    #: An answer that came between two polls.
    pending: Answer | None = None
    #: The newest document, for an agent that restarts while the central Stoker is away.
    document: Answer | None = None
    left_at: float = field(default_factory=time.monotonic)

    @property
    def is_waiting(self) -> bool:
        """Whether a poll of the agent is open."""
        return self.waiting is not None and not self.waiting.done()

    def deliver(self, answer: Answer) -> None:
        """Answer the open poll, or else the next one."""
        if answer.status == 200:
            self.document = answer
        else:
            self.is_active = False
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(answer)
        else:
            self.pending = answer

    def supersede(self) -> None:
        """End the open poll, because another one with the same key has come."""
        if self.waiting is not None and not self.waiting.done():
            self.waiting.set_result(SUPERSEDED)

    def take_pending(self, etag: str | None) -> Answer | None:
        """Return the answer that came since the last poll, unless the agent has this document."""
        answer, self.pending = self.pending, None
        if answer is None or (answer.status == 200 and answer.headers.get("etag") == etag):
            return None
        return answer

    def expire(self, now: float) -> bool:
        """Leave the shared poll after a while without polls. Return whether the agent can be forgotten."""
        if self.is_waiting:
            return False
        if now - self.left_at > _GRACE_SECONDS:
            self.is_active = False
        return now - self.left_at > _FORGET_SECONDS
