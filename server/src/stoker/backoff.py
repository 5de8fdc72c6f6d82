"""The pause before another attempt after failures."""

from __future__ import annotations

#: More doublings than this exceed every limit.
_MOST_DOUBLINGS = 16


def backoff(failures: int, *, first: float = 1.0, longest: float = 300.0) -> float:
    """
    Return the pause in seconds: ``first`` for 0 earlier failures in succession, doubled for each one, up to
    ``longest``.
    """
    return float(min(first * 2 ** min(failures, _MOST_DOUBLINGS), longest))
