"""Growing pauses, spread so that a thousand agents do not come back at once."""

from __future__ import annotations

import random

SHORTEST, LONGEST = 0.2, 30.0


class Pauses:
    """From a fifth of a second, each twice the one before, up to ``longest`` seconds."""

    def __init__(self, longest: float = LONGEST) -> None:
        self._longest = max(SHORTEST, longest)
        self._next = SHORTEST

    def next(self) -> float:
        pause, self._next = self._next, min(self._next * 2, self._longest)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 — only spreads the tries

    def reset(self) -> None:
        self._next = SHORTEST
