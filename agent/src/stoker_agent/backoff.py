"""Exponential backoff with jitter, so that many agents do not retry at the same moment."""

from __future__ import annotations

import random

SHORTEST, LONGEST = 0.2, 30.0


class Backoff:
    """Pauses in seconds: the first is at most 0.2 s, each next one twice as long, up to ``longest``."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = max(SHORTEST, longest)
        self._next = SHORTEST

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


def _spread(seconds: float, least: float, most: float) -> float:
    return seconds * random.uniform(least, most)  # noqa: S311 — the value only spreads the retries
