"""
Key rotation: encrypt all encrypted values in the database with the newest key.

Each transaction rotates a few rows, so that serving processes are not blocked. An interrupted rotation can be repeated,
because it skips values that already have the newest key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from stoker.store import sql as sqls
from stoker.store.encryption import ENCRYPTED, ENCRYPTED_COLUMNS
from stoker.store.open import Store
from stoker.store.sql import compose
from stoker.store.tx import Tx

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
BATCH = 100
#: Objects may have several megabytes each.
_OBJECTS = 10


def rotate(store: Store, batch: int = BATCH) -> int:
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
