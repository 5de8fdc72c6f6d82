"""Waits until one transaction blocks another."""

from __future__ import annotations

from collections.abc import Callable

from stoker.store.open import Store
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
