"""
Returns the space of deleted rows to the operating system.

SQLite keeps free pages in its file for new rows. A database with ``auto_vacuum = INCREMENTAL`` gives pages back on
request. PostgreSQL's autovacuum makes the space of deleted rows available to new ones by itself.
"""

from __future__ import annotations

import sqlite3
import time

from stoker.store.open import Store
from stoker.store.tx import Tx

#: Free pages that stay in the file, because new rows soon need them: a number, and a share of all pages.
_RESERVE_PAGES, _RESERVE_SHARE = 1000, 0.1
#: Pages that one transaction moves: some ten milliseconds.
_BATCH = 64
_PAUSE = 0.02
_INCREMENTAL = 2


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
    raw = tx.connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)

    def number(name: str) -> int:
        return int(raw.execute(f"PRAGMA {name}").fetchone()[0])

    free = number("freelist_count")
    surplus = free - max(_RESERVE_PAGES, int(number("page_count") * _RESERVE_SHARE))
    if surplus <= 0 or number("auto_vacuum") != _INCREMENTAL:
        return 0
    # SQLite frees one page for each row that is fetched.
    raw.execute(f"PRAGMA incremental_vacuum({min(surplus, _BATCH)})").fetchall()
    return free - number("freelist_count")
