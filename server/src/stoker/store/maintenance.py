"""
Maintenance of a database that serves: each transaction handles a few rows, so that other writers, of any process, can
proceed in between. An interrupted operation can be repeated.

Deletion of many rows is followed by the return of their space to the operating system. SQLite keeps free pages in its
file for new rows; a database with ``auto_vacuum = INCREMENTAL`` gives pages back on request. PostgreSQL's autovacuum
makes the space of deleted rows available to new ones by itself.

Key rotation encrypts all encrypted values in the database with the newest key. It skips values that already have it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from stoker.store import sql as sqls
from stoker.store.open import Store
from stoker.store.rows import ENCRYPTED, ENCRYPTED_COLUMNS
from stoker.store.sql import compose, sql
from stoker.store.tx import Tx

#: The number of rows in one transaction.
PURGE_BATCH = 500
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


def in_batches(store: Store, delete: Callable[[Tx, int], int], batch: int = PURGE_BATCH) -> int:
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


#: By table, the columns that identify a row, if these are not its id.
_KEYS: Mapping[str, tuple[str, ...]] = dict.fromkeys(ENCRYPTED_COLUMNS, ("id",)) | {
    "checks": ("deployment_id",),
    "containers": ("account", "name"),
    "objects": ("account", "container", "name"),
    "runs": ("deployment_id", "config_id"),
    "steps": ("stack_id", "key"),
    "trigger_targets": ("trigger_id", "position"),
}
#: Columns of bytes, which are always encrypted.
_BYTES = ("stdout_held", "stderr_held")
#: The number of rows in one transaction.
ROTATION_BATCH = 100
#: Objects may have several megabytes each.
_OBJECTS = 10


def rotate_keys(store: Store, batch: int = ROTATION_BATCH) -> int:
    """Rotate all values and return the number of changed ones. Raises Unavailable if a key is missing."""
    return sum(
        store.write(partial(_rotate_rows, store=store, table=table, keys=keys))
        for table in ENCRYPTED_COLUMNS
        for keys in _batches(store, table, min(batch, _OBJECTS) if table == "objects" else batch)
    )


def _batches(store: Store, table: str, size: int) -> Iterator[Sequence[Any]]:
    """Yield the primary keys of the rows that contain an encrypted value, in batches."""
    key = ", ".join(_KEYS[table])
    condition = f"({' OR '.join(_is_encrypted(table, name) for name in ENCRYPTED_COLUMNS[table])})"
    after: dict[str, Any] = {}
    while True:
        with store.read() as tx:
            query = compose(f"SELECT {key} FROM {table} WHERE {condition} ORDER BY {key} LIMIT :size")
            keys = tx.fetch_all(query, {**after, "size": size})
        if not keys:
            return
        yield keys
        if not after:
            condition += f" AND ({key}) > ({', '.join(f':{name}' for name in _KEYS[table])})"
        after = dict(zip(_KEYS[table], keys[-1], strict=True))


def _is_encrypted(table: str, name: str) -> str:
    if table == "objects":
        return "encrypted"
    if name in _BYTES:
        return f"{name} IS NOT NULL"
    return f"substr({name}, 1, {len(ENCRYPTED)}) = '{ENCRYPTED}'"


def _rotate_rows(tx: Tx, store: Store, table: str, keys: Sequence[Any]) -> int:
    """
    Rotate the rows with these keys. Another transaction may have changed or deleted a row since the keys were read.
    """
    key, names, count = _KEYS[table], ENCRYPTED_COLUMNS[table], 0
    # An unencrypted object may begin with the same characters.
    condition = f"{sqls.equal(*key)}{' AND encrypted' if table == 'objects' else ''}"
    query = compose(f"SELECT {', '.join(names)} FROM {table} WHERE {condition} @for_update")
    for values in keys:
        row = tx.execute_fast(query, dict(zip(key, values, strict=True)))
        changed = {} if row is None else _rotate_row(store, dict(zip(names, row, strict=True)))
        if changed:
            statement = compose(sqls.update(table, *changed, key=key).text)
            tx.execute_fast(statement, {**changed, **{f"key_{k}": v for k, v in zip(key, values, strict=True)}})
            count += len(changed)
    return count


def _rotate_row(store: Store, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns that have an older key, with their values encrypted with the newest key."""
    changed: dict[str, Any] = {}
    for name, value in row.items():
        is_text = value is None or isinstance(value, str)
        token = value if is_text else bytes(value).decode()
        if token is not None and token.startswith(ENCRYPTED):
            fresh = store.encryption.rotate(token)
            if fresh is not None:
                changed[name] = fresh if is_text else fresh.encode()
    return changed
