"""The keys that one process has validated lately, until a notification says that they may have changed."""

from __future__ import annotations

import hmac
import threading

from stoker.lru_cache import LruCache
from stoker.store.notifier import ALL
from stoker.store.open import Store


class KeyCache:
    """
    Validated keys by the id of their owner. A key begins with this id and a dot.

    ``topics``: the kind of the owners' topics, which end with the id. ``limit``: keys that are remembered.
    """

    def __init__(self, store: Store, topics: str, limit: int) -> None:
        self._lock = threading.Lock()
        self._valid: LruCache[str, bytes] = LruCache(limit)
        #: Number of notifications. A key that was read before a notification must not be cached after it.
        self.notified = 0
        store.notifier.subscribe(self._on_notification, topics)

    def find_owner(self, key: str) -> str | None:
        """Return the id of the key's owner if the key is cached, without I/O."""
        owner_id = key.partition(".")[0]
        valid = self._valid.get(owner_id)
        return owner_id if valid is not None and hmac.compare_digest(valid, encode(key)) else None

    def put(self, key: str, notified: int) -> None:
        """Remember a valid key, unless a notification came after ``notified``, the number when the key was read."""
        with self._lock:
            if notified == self.notified:
                self._valid.put(key.partition(".")[0], encode(key))

    def _on_notification(self, topic: str, _: int) -> None:
        with self._lock:
            self.notified += 1
            if topic == ALL:
                self._valid.clear()
            else:
                self._valid.drop(topic.partition("/")[2])


def encode(key: str) -> bytes:
    """Return a key as bytes. A client may send any characters."""
    return key.encode("utf-8", "surrogateescape")
