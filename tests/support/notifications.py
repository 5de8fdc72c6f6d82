"""Records the notifications of a store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from stoker.store.open import Store

#: Generous, because other work may keep the machine busy.
_PATIENCE_SECONDS = 60.0


class Notified:
    """All notifications of a store, with methods to wait for one."""

    def __init__(self, store: Store) -> None:
        self._changed = threading.Condition()
        self.all: list[tuple[str, int]] = []
        store.notifier.subscribe(self._on_notification)

    def _on_notification(self, notifications: Mapping[str, int]) -> None:
        with self._changed:
            self.all += notifications.items()
            self._changed.notify_all()

    def wait(self, notification: tuple[str, int]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: notification in self.all, _PATIENCE_SECONDS), self.all

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Wait until ``true`` returns true, checked at each notification and periodically."""
        end = time.monotonic() + _PATIENCE_SECONDS
        with self._changed:
            while not true():
                assert time.monotonic() < end, self.all
                self._changed.wait(0.05)
