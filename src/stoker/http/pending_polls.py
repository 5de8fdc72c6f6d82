"""
One pending poll per agent: a new poll ends the previous one.

An agent has one poll open at a time. Without this limit, one key could hold thousands of polls, and each notification
would have to answer all of them.
"""

from __future__ import annotations

from stoker.http.waiters import Wakeable


class PendingPoll:
    """A poll that waits for a new document. Its block is the time for which it is the pending poll of ``key``."""

    # A generator of contextlib would take 250 bytes more for each agent.
    __slots__ = ("_by_key", "_key", "is_superseded", "waiter")

    def __init__(self, by_key: dict[str, PendingPoll], key: str) -> None:
        self._by_key = by_key
        self._key = key
        #: The object to wake when the poll is superseded.
        self.waiter: Wakeable | None = None
        self.is_superseded = False

    def supersede(self) -> None:
        """End this poll, because the agent has sent a new one."""
        self.is_superseded = True
        if self.waiter is not None:
            self.waiter.wake()

    def __enter__(self) -> PendingPoll:
        before = self._by_key.get(self._key)
        if before is not None:
            before.supersede()
        self._by_key[self._key] = self
        return self

    def __exit__(self, *_: object) -> None:
        if self._by_key.get(self._key) is self:
            del self._by_key[self._key]


class PendingPolls:
    """The pending polls of this process. Use it on the event loop only."""

    def __init__(self) -> None:
        self._by_key: dict[str, PendingPoll] = {}

    def __len__(self) -> int:
        """The number of pending polls. May be called on any thread."""
        return len(self._by_key)

    def add(self, key: str) -> PendingPoll:
        """Return a poll whose block supersedes the pending poll of ``key`` and registers the new one until its end."""
        return PendingPoll(self._by_key, key)
