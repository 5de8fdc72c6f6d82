"""Records the notifications of a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from stoker.store.open import Store


class Notified:
    """All notifications of a store, with methods to wait for one."""

    def __init__(self, store: Store) -> None:
        self._changed = threading.Condition()
        self.all: list[tuple[str, int]] = []
        store.notifier.subscribe(self._on_notification)

    def _on_notification(self, topic: str, number: int) -> None:
        with self._changed:
            self.all.append((topic, number))
            self._changed.notify_all()

    def wait(self, notification: tuple[str, int]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: notification in self.all, 20), self.all

    def wait_for(self, true: Callable[[], bool], seconds: float = 20) -> None:
        """Wait until ``true`` returns true, checked at each notification and periodically. Fails after ``seconds``."""
        end = time.monotonic() + seconds
        with self._changed:
            while not true():
                if time.monotonic() > end:
                    assert seconds < 20, self.all
                    return
                self._changed.wait(0.05)
