"""
One pending poll per agent: a new poll ends the previous one.

An agent has one poll open at a time. Without this limit, one key could hold thousands of polls, and each notification
would have to answer all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from stoker.http.waiters import Waiter


class PendingPoll:
    """A poll that waits for a new document."""

    def __init__(self) -> None:
        #: The waiter that the poll waits on now.
        self.waiter: Waiter | None = None
        self.is_superseded = False

    def supersede(self) -> None:
        """End this poll, because the agent has sent a new one."""
        self.is_superseded = True
        if self.waiter is not None:
            self.waiter.wake()


class PendingPolls:
    """The pending polls of this process. Use it on the event loop only."""

    def __init__(self) -> None:
        self._by_key: dict[str, PendingPoll] = {}

    def __len__(self) -> int:
        """The number of pending polls. May be called on any thread."""
        return len(self._by_key)

    @contextmanager
    def add(self, key: str) -> Iterator[PendingPoll]:
        """Supersede the pending poll of ``key``, and register a new one until the block ends."""
        before = self._by_key.get(key)
        if before is not None:
            before.supersede()
        poll = self._by_key[key] = PendingPoll()
        try:
            yield poll
        finally:
            if self._by_key.get(key) is poll:
                del self._by_key[key]
