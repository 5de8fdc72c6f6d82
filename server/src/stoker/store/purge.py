"""Deletion of many rows in small transactions, so that other writers, of any process, can proceed in between."""

from __future__ import annotations

import time
from collections.abc import Callable

from stoker.store.open import Store
from stoker.store.tx import Tx

#: The number of rows in one transaction.
BATCH = 500
#: The minimum number of seconds between two transactions. SQLite's lock is not fair: a writer of another process tries
#: to get it at intervals of up to a tenth of a second, and must find it free.
_PAUSE = 0.02


def in_batches(store: Store, delete: Callable[[Tx, int], int], batch: int = BATCH) -> int:
    """
    Call ``delete(tx, batch)`` in separate transactions until it returns 0; return the sum.

    The transactions do not wait for the disk: what a crash of the machine undoes, a later call deletes. ``delete``
    deletes at most ``batch`` rows and returns their number. If the process is killed, the next call deletes
    the remaining rows.
    """
    total = 0
    while True:
        begun = time.monotonic()
        count = store.write(lambda tx: delete(tx, batch), background=True, durable=False)
        if not count:
            return total
        total += count
        time.sleep(max(_PAUSE, time.monotonic() - begun))
