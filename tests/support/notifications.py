"""Records the notifications of a store."""

from __future__ import annotations

from collections.abc import Callable

from stoker.store.open import Store
from support import waiting


class Notified:
    """All notifications of a store, with methods to wait for one."""

    def __init__(self, store: Store) -> None:
        self.all: list[tuple[str, int]] = []
        store.notifier.subscribe(lambda notifications: self.all.extend(notifications.items()))

    def wait(self, notification: tuple[str, int]) -> None:
        self.wait_for(lambda: notification in self.all)

    def wait_for(self, true: Callable[[], bool]) -> None:
        """Wait until ``true`` returns true."""
        waiting.until(true, explain=lambda: str(self.all))
