"""Rows for foreign keys, with no other relevant content."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from stoker.store.open import Store
from stoker.store.schema import resources, stacks


def add_resource(store: Store, *, stack_id: str, resource_id: str) -> None:
    """Add a resource, and its stack if it does not exist."""

    def add(tx: Any) -> None:
        if tx.run(sa.select(stacks.c.id).where(stacks.c.id == stack_id)).first() is None:
            tx.run(sa.insert(stacks), _filled(stacks, id=stack_id, root_id=stack_id))
        tx.run(sa.insert(resources), _filled(resources, id=resource_id, stack_id=stack_id, name=resource_id))

    store.write(add)


def _filled(table: sa.Table, **values: Any) -> dict[str, Any]:
    """Return ``values`` with the empty value of every other column that is not nullable."""
    empty = {column.name: column.type.python_type() for column in table.columns if not column.nullable}
    return {**empty, **values}
