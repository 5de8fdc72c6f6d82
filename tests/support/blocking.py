"""Write transactions that others wait for."""

from __future__ import annotations

import threading
from collections.abc import Callable

from stoker.store.open import Store
from stoker.store.tx import Tx
from support import query, waiting

_WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"


def is_blocked(store: Store) -> bool:
    """Whether a write transaction waits: for a row lock on PostgreSQL, for its turn on SQLite."""
    if store.dialect == "sqlite":
        return bool(store._writer._waiting or store._writer._background)
    with store.read() as tx:
        return query.scalar(tx, _WAITING) > 0


def until_blocked(store: Store, has_ended: Callable[[], bool]) -> None:
    """Wait until another transaction is blocked by the current one, or has ended without blocking."""
    waiting.until(
        lambda: has_ended() or is_blocked(store), explain=lambda: "the other transaction neither waits nor ends"
    )


class HeldWrite:
    """A write transaction that has done all of ``do``, and is committed when the test calls ``commit``."""

    def __init__(self, store: Store, do: Callable[[Tx], object]) -> None:
        self._store, self._do = store, do
        self._done, self._released = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._thread.start()
        assert self._done.wait(60)

    def _write(self) -> None:
        def do(tx: Tx) -> None:
            self._do(tx)
            self._done.set()
            assert self._released.wait(60)

        self._store.write(do)

    def commit(self) -> None:
        """Let the transaction end, and wait for it."""
        self._released.set()
        self._thread.join(60)
