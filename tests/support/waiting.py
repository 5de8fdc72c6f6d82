"""Waits for events without a notification."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator

#: Seconds between two checks: the shortest and the longest, and the part of the time since the beginning. A short wait
#: ends at once, and a long one leaves the processor to what it waits for.
_SHORTEST, _LONGEST, _GROWTH = 0.01, 0.25, 0.1


def until(is_true: Callable[[], object], seconds: float = 60, explain: Callable[[], str] | None = None) -> None:
    """Wait until ``is_true`` returns a true value. Raises AssertionError with ``explain()`` after that time."""
    for _ in attempts(seconds, explain):
        if is_true():
            return


def attempts(seconds: float, explain: Callable[[], str] | None = None) -> Iterator[None]:
    """Yield before each attempt, the first one at once. Raises AssertionError with ``explain()`` after that time."""
    begun = time.monotonic()
    yield
    while (elapsed := time.monotonic() - begun) < seconds:
        time.sleep(min(max(_SHORTEST, elapsed * _GROWTH), _LONGEST))
        yield
    raise AssertionError(explain() if explain else f"the condition did not become true in {seconds:g} seconds")


def answers(url: str) -> bool:
    """Whether a service answers, and not with an error of its own."""
    try:
        with urllib.request.urlopen(url, timeout=10):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return error.code < 500
    except OSError:
        return False
