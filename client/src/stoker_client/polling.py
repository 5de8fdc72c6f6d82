"""The pace of all that this package reads again until it has changed."""

import math
import time
from collections.abc import Iterator

#: Seconds between the beginnings of two attempts: at first, and at most unless an attempt takes long.
FIRST, USUAL = 0.1, 1.0
GROWTH = 1.5
#: Longest pause in seconds.
LONGEST = 5.0
#: How many times longer than an attempt the time to the next one is.
SHARE = 5.0


def attempts(until: float = math.inf, *, share: float | None = None) -> Iterator[None]:
    """
    Yield for each attempt, and pause between two attempts, up to the time ``until`` (time.monotonic).

    The pauses grow. The attempts take at most a fifth of the time, so that large objects are read less often;
    ``share`` replaces the 5: it is 1 for requests whose answers the service may delay. Stop with ``return`` or
    ``break``::

        for _ in attempts(time.monotonic() + 60):
            if is_complete():
                break
    """
    pause = FIRST
    while True:
        began = time.monotonic()
        yield
        now = time.monotonic()
        if now >= until:
            return
        next_begin = began + max(pause, (now - began) * (SHARE if share is None else share))
        time.sleep(max(min(next_begin - now, LONGEST, until - now), 0))
        pause = min(pause * GROWTH, USUAL)
