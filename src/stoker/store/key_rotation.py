"""
Key rotation: encrypt all encrypted values in the database with the newest key.

Each transaction rotates a few rows, so that serving processes are not blocked. An interrupted rotation can be repeated,
because it skips values that already have the newest key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import sqlalchemy as sa

from stoker.store.encryption import ENCRYPTED
from stoker.store.open import Store
from stoker.store.schema import metadata, objects
from stoker.store.schema.base import ENCRYPTED as ENCRYPTED_COLUMN
from stoker.store.tx import Tx

#: Every column that may be encrypted.
COLUMNS: dict[sa.Table, tuple[str, ...]] = {
    table: names
    for table in metadata.sorted_tables
    if (names := tuple(column.name for column in table.c if column.info == ENCRYPTED_COLUMN))
}
#: The number of rows in one transaction.
BATCH = 100
#: Objects may have several megabytes each.
_OBJECTS = 10


def rotate(store: Store, batch: int = BATCH) -> int:
    """Rotate all values and return the number of changed ones. Raises Unavailable if a key is missing."""
    return sum(
        store.write(partial(_rotate_rows, store=store, table=table, keys=keys))
        for table in COLUMNS
        for keys in _batches(store, table, min(batch, _OBJECTS) if table is objects else batch)
    )


def _batches(store: Store, table: sa.Table, size: int) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield the primary keys of the rows that contain an encrypted value, in batches."""
    primary = tuple(table.primary_key.columns)
    encrypted = sa.or_(*(_is_encrypted(table.c[name]) for name in COLUMNS[table]))
    query = sa.select(*primary).where(encrypted).order_by(*primary).limit(size)
    after: sa.Row[Any] | None = None
    while True:
        beyond = query if after is None else query.where(sa.tuple_(*primary) > sa.tuple_(*after))
        with store.read() as tx:
            keys = tx.run(beyond).all()
        if not keys:
            return
        yield keys
        after = keys[-1]


def _is_encrypted(column: sa.Column[Any]) -> sa.ColumnElement[bool]:
    if column is objects.c.data:
        return objects.c.encrypted
    if isinstance(column.type, sa.LargeBinary):
        return column.is_not(None)
    return sa.func.substr(column, 1, len(ENCRYPTED)) == ENCRYPTED


def _rotate_rows(tx: Tx, store: Store, table: sa.Table, keys: Sequence[sa.Row[Any]]) -> int:
    """
    Rotate the rows with these keys. Another transaction may have changed or deleted a row since the keys were read.
    """
    primary, count = tuple(table.primary_key.columns), 0
    for key in keys:
        condition = sa.and_(*(column == value for column, value in zip(primary, key, strict=True)))
        row = tx.run(sa.select(table).where(condition).with_for_update()).first()
        changed = {} if row is None else _rotate_row(store, table, row)
        if changed:
            tx.run(sa.update(table).where(condition).values(changed))
            count += len(changed)
    return count


def _rotate_row(store: Store, table: sa.Table, row: sa.Row[Any]) -> dict[str, Any]:
    """Return the columns that have an older key, with their values encrypted with the newest key."""
    if table is objects and not row.encrypted:
        return {}  # an unencrypted object may begin with the same characters
    changed: dict[str, Any] = {}
    for name in COLUMNS[table]:
        value = getattr(row, name)
        is_text = value is None or isinstance(value, str)
        token = value if is_text else bytes(value).decode()
        if token is not None and token.startswith(ENCRYPTED):
            fresh = store.encryption.rotate(token)
            if fresh is not None:
                changed[name] = fresh if is_text else fresh.encode()
    return changed
