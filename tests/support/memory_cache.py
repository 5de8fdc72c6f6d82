"""
A pipeline filter that replaces memcached with the memory of Swift's only proxy.

Swift runs the filter in its own environment, so this module imports nothing from Stoker.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any


class Cache:
    """
    The methods of Swift's MemcacheRing that its filters call. A proxy runs one thread at a time, so no lock is needed.
    """

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
    """Return the expiry time; 0 seconds mean that the entry never expires."""
    return time.monotonic() + seconds if seconds else float("inf")
