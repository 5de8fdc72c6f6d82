"""
What Swift keeps in memcached, kept in the memory of its one proxy instead: a filter for its pipeline.

Run by Swift, in its own environment, so it imports nothing of ours.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


class Cache:
    """As much of Swift's MemcacheRing as its filters call. One proxy is one thread at a time: nothing is locked."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[float, Any]] = {}

    def get(self, key: str, **_: Any) -> Any:
        until, value = self._kept.get(key, (0.0, None))
        return value if until > time.monotonic() else None

    def set(self, key: str, value: Any, time: float = 0, **_: Any) -> None:
        self._kept[key] = (_until(time), value)

    def incr(self, key: str, delta: int = 1, time: float = 0, **_: Any) -> int:
        value = max(0, int(self.get(key) or 0) + delta)
        self.set(key, value, time)
        return value

    def decr(self, key: str, delta: int = 1, time: float = 0, **_: Any) -> int:
        return self.incr(key, -delta, time)

    def delete(self, key: str, **_: Any) -> None:
        self._kept.pop(key, None)

    def set_multi(self, values: Mapping[str, Any], _server_key: str = "", time: float = 0, **_: Any) -> None:
        for key, value in values.items():
            self.set(key, value, time)

    def get_multi(self, keys: list[str], _server_key: str = "", **_: Any) -> list[Any]:
        return [self.get(key) for key in keys]


def filter_factory(_conf: Mapping[str, str], **_: str) -> Callable[[Any], Any]:
    cache = Cache()

    def around(app: Any) -> Any:
        def handle(env: dict[str, Any], start_response: Any) -> Any:
            env["swift.cache"] = cache
            return app(env, start_response)

        return handle

    return around


def _until(seconds: float) -> float:
    """0: as long as it runs."""
    return time.monotonic() + seconds if seconds else float("inf")
