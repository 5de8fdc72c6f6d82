"""The polls of agents: held at the relay, and answered by shared polls."""

from __future__ import annotations

import asyncio
import time

from stoker_relay.centre import Answer, Centre
from stoker_relay.known_keys import KnownKeys, digest_of
from stoker_relay.members import Member
from stoker_relay.shared_polls import Batches

#: Seconds that a first poll, without an ETag, waits for its document.
_FIRST_SECONDS = 15.0
_LONGEST_WAIT = 60
#: Seconds that an agent without a document waits while the central Stoker is away.
_AWAY_SECONDS = 1.0
_SWEEP_SECONDS = 2.0
AWAY = Answer(
    503,
    {"retry-after": "5", "content-type": "application/json"},
    b'{"code":503,"title":"Service Unavailable","error":{"type":"CentreAway",'
    b'"message":"The relay cannot reach the central Stoker."}}',
)


class AgentPolls:
    """Answers the polls of agents. Use it on the event loop only."""

    def __init__(self, centre: Centre, known_keys: KnownKeys, batches: Batches) -> None:
        self._centre = centre
        self._known_keys = known_keys
        self._batches = batches
        self._members: dict[str, Member] = {}
        self._is_closed = False

    def __len__(self) -> int:
        """The number of open polls."""
        return sum(member.is_waiting for member in self._members.values())

    def count_agents(self) -> int:
        """Return the number of agents that have polled lately."""
        return len(self._members)

    async def poll(self, key: str, etag: str | None, agent: str, wait: int) -> Answer:
        """
        Return the agent's document as soon as it differs from ``etag``, or 304 after ``wait`` seconds.

        ``agent`` is the header X-Stoker-Agent. While the central Stoker is away, an agent whose key is known waits as
        if nothing had changed; others get 503.
        """
        if self._is_closed:
            return AWAY
        member = self._members.get(key)
        if member is None:
            member = self._members[key] = Member(key)
            self._batches.add(member)
        member.supersede()
        pending = member.take_pending(etag)
        if pending is not None:
            return pending
        if not member.is_active or (member.etag, member.agent) != (etag, agent):
            member.etag, member.agent, member.is_active = etag, agent, True
            self._batches.change(member)
        future = member.waiting = asyncio.get_running_loop().create_future()
        try:
            # Not wait_for, which would cancel the future: a document may come at the last moment.
            await asyncio.wait({future}, timeout=self._seconds(member, wait))
            return future.result() if future.done() else self._without_answer(member, etag)
        finally:
            if member.waiting is future:
                member.waiting = None
            member.left_at = time.monotonic()

    def forget(self, key: str) -> None:
        """Take an agent out of its shared poll, because it polls directly or leaves."""
        member = self._members.get(key)
        if member is not None:
            member.is_active = False
            self._batches.change(member)

    async def run(self) -> None:
        """Forget agents that no longer poll, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = time.monotonic()
            for key, member in list(self._members.items()):
                was_active = member.is_active
                if member.expire(now):
                    del self._members[key]
                    self._batches.remove(member)
                elif was_active and not member.is_active:
                    self._batches.change(member)

    def close(self) -> None:
        """Answer all polls with 503, because the relay stops."""
        self._is_closed = True
        for member in self._members.values():
            if member.waiting is not None and not member.waiting.done():
                member.waiting.set_result(AWAY)

    def _seconds(self, member: Member, wait: int) -> float:
        """Return how long the poll waits. While Stoker is away, only a known agent with a document waits long."""
        if member.etag is None:
            return _FIRST_SECONDS if self._centre.is_reachable else _AWAY_SECONDS
        if not self._centre.is_reachable and not self._known_keys.has(digest_of(member.key)):
            return _AWAY_SECONDS
        return float(min(wait, _LONGEST_WAIT))

    def _without_answer(self, member: Member, etag: str | None) -> Answer:
        """Return the answer after the wait without a document."""
        is_known = self._known_keys.has(digest_of(member.key))
        if is_known and etag is not None:
            return Answer(304, {"etag": etag})
        return member.document if is_known and member.document is not None else AWAY
