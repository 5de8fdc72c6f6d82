"""
Returns the space of deleted rows to the operating system.

SQLite keeps free pages in its file for new rows. A database with ``auto_vacuum = INCREMENTAL`` gives pages back on
request. PostgreSQL's autovacuum makes the space of deleted rows available to new ones by itself.
"""

from __future__ import annotations

import time

from stoker.store.open import Store
from stoker.store.sql import sql
from stoker.store.tx import Tx

#: Free pages that stay in the file, because new rows soon need them: a number, and a share of all pages.
_RESERVE_PAGES, _RESERVE_SHARE = 1000, 0.1
#: Pages that one transaction moves: some ten milliseconds.
_BATCH = 64
_PAUSE = 0.02
_PAGES = sql(
    "SELECT page_count, freelist_count, auto_vacuum"
    " FROM pragma_page_count(), pragma_freelist_count(), pragma_auto_vacuum()"
)
_INCREMENTAL = 2
#: One page, because SQLite moves a page at each step of this statement, and versions of Python take one step or all.
_FREE = sql("PRAGMA incremental_vacuum(1)")


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
    for _ in range(min(surplus, _BATCH)):
        tx.fetch_all(_FREE, {})
    return int(free - tx.execute_fast(_PAGES, {})[1])
