"""A dictionary of limited size, for values that can be read again."""

from __future__ import annotations

import threading
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class BoundedDict(dict[K, V]):
    """
    At most ``size`` entries: a further one replaces the one that was put first. Thread-safe.

    Reading is that of a dictionary, which needs no lock. Change it by these methods only.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._lock = threading.Lock()

    def put(self, key: K, value: V) -> None:
        """Add an entry, or replace it as if it were new."""
        with self._lock:
            self.pop(key, None)
            self[key] = value
            if len(self) > self._size:
                del self[next(iter(self))]

    def drop(self, key: K) -> None:
        """Forget an entry, if there is one."""
        with self._lock:
            self.pop(key, None)

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            super().clear()
