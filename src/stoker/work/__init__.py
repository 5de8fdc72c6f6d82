"""
Durable jobs, schedules and deadlines: one port, and an engine for each database behind it.

A job is deferred in the transaction that makes it necessary. It runs at least once, outside any transaction, in a
worker thread; so its handler must be safe to repeat.
"""

from __future__ import annotations

from stoker.store.open import Store
from stoker.work.port import GiveUp, Handler, Work, backoff, defer_once

__all__ = ["GiveUp", "Handler", "Work", "backoff", "defer_once", "open_work"]


def open_work(store: Store) -> Work:
    if store.dialect == "postgresql":
        # Late: Procrastinate and its pool cost start-up time and memory that SQLite's users need not pay.
        from stoker.work.procrastinating import ProcrastinateWork

        return ProcrastinateWork(store)
    from stoker.work.runner import Runner

    return Runner(store)
