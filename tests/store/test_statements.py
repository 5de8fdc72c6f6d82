"""Every statement of the store compiles on both databases with the parameters that it names."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from stoker import store


def statements() -> Iterator[tuple[str, sa.ClauseElement]]:
    for module in pkgutil.iter_modules(store.__path__):
        for name, value in vars(importlib.import_module(f"stoker.store.{module.name}")).items():
            for part in _parts(value):
                yield f"{module.name}.{name}", part


def _parts(value: Any) -> Iterator[sa.ClauseElement]:
    if isinstance(value, sa.Executable):
        yield value
    elif isinstance(value, dict | list | tuple):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _parts(part)
    elif hasattr(value, "codec"):
        yield from _parts(list(vars(value).values()))


def parameters(statement: sa.ClauseElement) -> list[str]:
    """The names that the statement's text or its clauses give to values."""
    return [element.key for element in sa.sql.visitors.iterate(statement) if isinstance(element, sa.BindParameter)]


@pytest.mark.parametrize("dialect", [sqlite.dialect(), postgresql.dialect()], ids=["sqlite", "postgresql"])
def test_every_statement_compiles(dialect):
    every = list(statements())
    assert len(every) > 250
    for name, statement in every:
        try:
            # Without these names, an UPDATE would set every column that is a parameter of its condition.
            keys = parameters(statement) if isinstance(statement, sa.Update) else None
            compiled: Any = statement.compile(dialect=dialect, column_keys=keys)
            lists = [bind for bind in compiled.binds.values() if bind.expanding]
            assert all(bind.required for bind in lists), (
                f"{name}: a constant list is or_, so that the driver executes it"
            )
        except sa.exc.CompileError as error:
            pytest.fail(f"{name}: {error}")
