"""
Sessions of shared polls: a list of agents that a relay has sent once, and what changed since the last answer.

A session exists in the memory of one process. A relay sends the full list again to a process that does not know its
session, so a lost session costs one request. Use sessions on the event loop only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stoker.http.pending_polls import PendingPolls
from stoker.http.waiters import Waiters
from stoker.servers.keys import key_topic
from stoker.servers.last_seen import parse_header
from stoker.servers.relays import relay_topic
from stoker.store.notifier import server_topic

#: Seconds after its last request until a session is forgotten.
_IDLE_SECONDS = 30.0
#: Seconds for which changes are collected, and seconds between two answers while changes continue.
_COLLECT_SECONDS, _BETWEEN_SECONDS = 0.005, 0.1


class Member:
    """An agent of a session, whose key was valid. ``etag`` is that of the document that it has or is about to get."""

    def __init__(self, session: Session, number: int, server_id: str, key: str) -> None:
        self.number = number
        self.server_id = server_id
        self.key = key
        self.etag: str | None = None
        self.agent = ""
        self.with_modes = False
        self._session = session
        self.poll = session.pending_polls.add(server_id).__enter__()
        self.poll.waiter = self

    def update(self, etag: str | None, agent: str) -> None:
        """Note what the agent has sent with its poll."""
        self.etag = etag
        if agent != self.agent:
            self.agent, self.with_modes = agent, bool(parse_header(agent)[2])

    def wake(self, topic: str | None = None) -> None:
        """Compare the document again, because it, the key or the agent's polls may have changed."""
        self._session.mark(self)


class Session:
    """The agents of one shared poll."""

    def __init__(self, relay: str, waiters: Waiters, pending_polls: PendingPolls) -> None:
        self.pending_polls = pending_polls
        self.members: dict[int, Member] = {}
        #: The number of the relay's last request; None: the session has ended.
        self.number: int | None = None
        #: Times (time.monotonic) of the last answer with documents, and of the last check for due heartbeats.
        self.answered_at = self.checked_at = 0.0
        self.expiry: asyncio.TimerHandle | None = None
        self.lock = asyncio.Lock()
        self._topic = relay_topic(relay)
        self._waiters = waiters
        self._changed: dict[int, Member] = {}
        self._woken = asyncio.Event()
        waiters.add(self, self._topic)

    def put(self, number: int, server_id: str, key: str, etag: str | None, agent: str) -> None:
        """Add an agent, or note its newer poll."""
        member = self.members.get(number)
        if member is not None and member.key != key:
            self.remove(number)
            member = None
        if member is None:
            member = self.members[number] = Member(self, number, server_id, key)
            self._waiters.add(member, *_topics(server_id))
        member.update(etag, agent)
        self.mark(member)

    def remove(self, number: int) -> None:
        """Remove an agent. An unknown number is ignored."""
        member = self.members.pop(number, None)
        if member is not None:
            self._changed.pop(number, None)
            self._waiters.remove(member, *_topics(member.server_id))
            member.poll.__exit__()

    def mark(self, member: Member) -> None:
        """Compare the member's document before the next answer."""
        if self.members.get(member.number) is member:
            self._changed[member.number] = member
            self._woken.set()

    def wake(self, topic: str | None = None) -> None:
        """End the wait of the held request, because a new request has come or the relay was deleted."""
        self._woken.set()

    def take_changed(self) -> list[Member]:
        """Return the members whose documents must be compared, once."""
        changed, self._changed = list(self._changed.values()), {}
        return changed

    async def wait(self, until: float) -> None:
        """Wait until there are changes, at most until a time (time.monotonic), and collect further ones."""
        timer = asyncio.get_running_loop().call_later(max(until - time.monotonic(), 0), self._woken.set)
        try:
            if not self._changed:  # an earlier request may have taken the wake-up
                await self._woken.wait()
        finally:
            timer.cancel()
        self._woken.clear()
        await asyncio.sleep(_COLLECT_SECONDS)

    async def space(self) -> None:
        """Wait a moment if an answer was sent just before, so that a busy session has few and large answers."""
        await asyncio.sleep(max(self.answered_at + _BETWEEN_SECONDS - time.monotonic(), 0))

    def close(self) -> None:
        """End the session and its held request."""
        self.number = None
        if self.expiry is not None:
            self.expiry.cancel()
        for number in list(self.members):
            self.remove(number)
        self._waiters.remove(self, self._topic)
        self.wake()


class Sessions:
    """The sessions of this process, by relay and by the session's own name."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], Session] = {}

    def begin(self, relay: str, name: str, waiters: Waiters, pending_polls: PendingPolls) -> Session:
        """Return a new session without members. An earlier one with its name ends."""
        self.end(relay, name)
        session = self._by_name[relay, name] = Session(relay, waiters, pending_polls)
        return session

    def find(self, relay: str, name: str, number: int) -> Session | None:
        """Return the session if ``number`` is that of its next request, so that no change is missing."""
        session = self._by_name.get((relay, name))
        return session if session is not None and session.number == number - 1 else None

    def end(self, relay: str, name: str, session: Session | None = None) -> None:
        """Forget a session; if ``session`` is given, only if the name still belongs to it."""
        current = self._by_name.get((relay, name))
        if current is not None and session in (None, current):
            del self._by_name[relay, name]
            current.close()

    @contextmanager
    def hold(self, relay: str, name: str, session: Session, number: int) -> Iterator[None]:
        """Answer the request ``number`` in the block. It ends the wait of the earlier request; a failure ends all."""
        session.number = number
        session.wake()
        if session.expiry is not None:
            session.expiry.cancel()
        try:
            yield
        except BaseException:
            self.end(relay, name, session)
            raise
        if session.number == number:
            loop = asyncio.get_running_loop()
            session.expiry = loop.call_later(_IDLE_SECONDS, self.end, relay, name, session)


def _topics(server_id: str) -> tuple[str, str]:
    return server_topic(server_id), key_topic(server_id)
