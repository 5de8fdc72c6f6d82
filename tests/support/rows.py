"""Rows for foreign keys, with no other relevant content."""

from __future__ import annotations

from typing import Any

from stoker.store.open import Store
from stoker.store.sql import insert, sql
from support.tables import columns


def add_resource(store: Store, *, stack_id: str, resource_id: str) -> None:
    """Add a resource, and its stack if it does not exist."""

    def add(tx: Any) -> None:
        if tx.execute_fast(sql("SELECT 1 FROM stacks WHERE id = :id"), {"id": stack_id}) is None:
            _add(tx, "stacks", id=stack_id, root_id=stack_id)
        _add(tx, "resources", id=resource_id, stack_id=stack_id, name=resource_id)

    store.write(add)


def _add(tx: Any, table: str, **values: Any) -> None:
    """Insert ``values`` with the empty value of every other column that is not nullable."""
    row = {name: column.a_value("") for name, column in columns(tx, table).items()} | values
    tx.execute_fast(insert(table, *row), row)
