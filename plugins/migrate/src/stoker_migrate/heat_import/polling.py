"""Waits for another service."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from stoker_client.errors import TimedOut

T = TypeVar("T")
#: Seconds between two questions, and until no answer is expected any more.
_PAUSE, _LIMIT = 1.0, 3600.0


def poll(ask: Callable[[], T | None], limit: float = _LIMIT, pause: float = _PAUSE) -> T:
    """Call ``ask`` until it returns a value. ``limit`` and ``pause`` are in seconds. Raises TimedOut."""
    end = time.monotonic() + limit
    while (value := ask()) is None:
        if time.monotonic() >= end:
            raise TimedOut(f"no result after {limit:.0f} seconds")
        time.sleep(pause)
    return value
