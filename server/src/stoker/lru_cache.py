"""A cache of limited size, for values that can be read again, with an end of their validity."""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """
    At most ``size`` entries: a further one replaces the entry that was not used for longest. Thread-safe.

    ``functools.lru_cache`` has the same rule, but cannot forget single entries.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._lock = threading.Lock()
        #: Key → (end of validity by the monotonic clock, value).
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value and count this as a use; None if there is none that is valid."""
        with self._lock:
            until, value = self._entries.get(key, (math.inf, None))
            if value is None or until < time.monotonic():
                return None
            self._entries.move_to_end(key)
            return value

    def put(self, key: K, value: V, until: float = math.inf) -> None:
        """Add or replace an entry, which is valid until this time of the monotonic clock."""
        with self._lock:
            self._entries[key] = until, value
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """Forget an entry, if there is one."""
        with self._lock:
            self._entries.pop(key, None)

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()
