"""
Deletion of many rows in small transactions, so that other writers, of any process, can proceed in between, and the
return of their space to the operating system.

SQLite keeps free pages in its file for new rows. A database with ``auto_vacuum = INCREMENTAL`` gives pages back on
request. PostgreSQL's autovacuum makes the space of deleted rows available to new ones by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from stoker.store.open import Store
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: The number of rows in one transaction.
BATCH = 500
#: The minimum number of seconds between two transactions. SQLite's lock is not fair: a writer of another process tries
#: to get it at intervals of up to a tenth of a second, and must find it free.
_PAUSE = 0.02
#: Free pages that stay in the file, because new rows soon need them: a number, and a share of all pages.
_RESERVE_PAGES, _RESERVE_SHARE = 1000, 0.1
#: Pages that one transaction moves: some ten milliseconds.
_MOVED = 64
_PAGES = sql(
    "SELECT page_count, freelist_count, auto_vacuum"
    " FROM pragma_page_count(), pragma_freelist_count(), pragma_auto_vacuum()"
)
_INCREMENTAL = 2
#: One page, because SQLite moves a page at each step of this statement, and versions of Python take one step or all.
_FREE = sql("PRAGMA incremental_vacuum(1)")


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


def reclaim(store: Store) -> int:
    """Shrink the file of a SQLite database, in small transactions, and return the number of freed pages."""
    if store.dialect != "sqlite":
        return 0
    total = 0
    while count := store.write(_free_some, background=True, durable=False):
        total += count
        time.sleep(_PAUSE)
    return total


def _free_some(tx: Tx) -> int:
    pages, free, vacuum = tx.execute_fast(_PAGES, {})
    surplus = free - max(_RESERVE_PAGES, int(pages * _RESERVE_SHARE))
    if surplus <= 0 or vacuum != _INCREMENTAL:
        return 0
    for _ in range(min(surplus, _MOVED)):
        tx.fetch_all(_FREE, {})
    return int(free - tx.execute_fast(_PAGES, {})[1])
