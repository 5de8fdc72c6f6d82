"""Exponential backoff with jitter, so that many agents do not retry at the same moment."""

from __future__ import annotations

import random
import time
from typing import Optional

from stoker_agent.web import Refused, Unreachable

SHORTEST, LONGEST = 0.2, 30.0
#: The least pause after a refusal, of which an early retry changes nothing.
_REFUSED_SECONDS = 60.0


class Backoff:
    """
    Pauses in seconds: the first is at most 0.2 s, each next one twice as long, up to ``longest``.

    ``due`` is the time (time.monotonic) at which what was postponed is tried again.
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = max(SHORTEST, longest)
        self._next = SHORTEST
        self.due = 0.0

    def next(self, retry_after: float = 0.0) -> float:
        """
        Return the next pause in seconds, multiplied by a random factor of 0.5 to 1.

        ``retry_after``: the seconds that the service asks to wait. The pause is then not shorter, and up to a quarter
        longer than they are.
        """
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return max(_spread(pause, 0.5, 1.0), _spread(retry_after, 1.0, 1.25))

    def reset(self) -> None:
        """Start again with the shortest pause."""
        self._next = SHORTEST

    def postpone(self, error: Optional[Unreachable] = None) -> None:
        """Set ``due`` after a failure: a pause later, as long as the service asks, and a minute if it refuses."""
        pause = self.next(error.retry_after if error else 0.0)
        self.due = time.monotonic() + max(pause, _REFUSED_SECONDS if isinstance(error, Refused) else 0.0)


def _spread(seconds: float, least: float, most: float) -> float:
    return seconds * random.uniform(least, most)  # noqa: S311 — the value only spreads the retries
