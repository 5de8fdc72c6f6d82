"""Calls of several threads that begin together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def call_together(count: int, do: Callable[[int], T]) -> list[T]:
    """Call ``do`` with each number below ``count``, each in its own thread, and return the results in order."""
    ready = threading.Barrier(count)

    def call(number: int) -> T:
        ready.wait(60)
        return do(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))
