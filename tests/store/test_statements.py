"""Both databases accept every statement of the store."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from stoker import store as package
from stoker.store.query import Query
from stoker.store.sql import Statement

#: Statements for one database.
ONLY = {
    "postgresql": ("tx._SHARED_LOCK", "tx._ADVISORY_LOCK", "postgresql._NOT_DURABLE"),
    "sqlite": ("maintenance._PAGES", "maintenance._FREE"),
}


def statements() -> Iterator[tuple[str, Statement]]:
    for module in pkgutil.iter_modules(package.__path__):
        for name, value in vars(importlib.import_module(f"stoker.store.{module.name}")).items():
            for part in _parts(value):
                yield f"{module.name}.{name}", part


def _parts(value: Any) -> Iterator[Statement]:
    if isinstance(value, Statement):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)
    elif isinstance(value, Query):
        yield value.statement
    elif hasattr(value, "codec"):
        yield from _parts(list(vars(value).values()))


def test_the_database_accepts_every_statement(store):
    """It knows the tables, columns and functions, and PostgreSQL can derive the types of the parameters."""
    plain = {statement: name for name, statement in statements()}
    assert len(plain) > 250
    with store.session() as driver:
        for statement, name in plain.items():
            if any(name in names for dialect, names in ONLY.items() if dialect != store.dialect):
                continue
            if store.dialect == "sqlite":
                text, names = statement.sqlite
                driver.execute(f"EXPLAIN {text}", [None] * len(names))
            else:
                result = driver.pgconn.prepare(b"", statement.postgresql[0])
                assert not result.error_message, f"{name}: {result.error_message.decode()}"
