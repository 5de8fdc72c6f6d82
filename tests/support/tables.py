"""What a database says of its tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stoker.store.sql import insert, quote, sql

_TABLES = sql(
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
    postgresql="SELECT CAST(table_name AS text) FROM information_schema.tables"
    " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE' ORDER BY 1",
)
_COLUMNS = sql(
    'SELECT name, type, "notnull", dflt_value, pk > 0 FROM pragma_table_xinfo(:table) ORDER BY name',
    postgresql="SELECT CAST(attname AS text), format_type(atttypid, atttypmod), attnotnull,"
    " CASE WHEN attidentity <> '' THEN 'identity' ELSE pg_get_expr(adbin, adrelid) END,"
    " EXISTS (SELECT 1 FROM pg_index WHERE indrelid = attrelid AND indisprimary AND attnum = ANY (indkey))"
    " FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum"
    " WHERE attrelid = to_regclass(:table) AND attnum > 0 AND NOT attisdropped ORDER BY 1",
)
_REFERENCES = sql(
    'SELECT "from", "table", on_delete FROM pragma_foreign_key_list(:table) ORDER BY 1',
    postgresql="SELECT CAST(attname AS text), CAST(confrelid::regclass AS text), pg_get_constraintdef(c.oid)"
    " FROM pg_constraint c JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]"
    " WHERE contype = 'f' AND conrelid = to_regclass(:table) ORDER BY 1",
)
_INDEXES = sql(
    "SELECT tbl_name, name, sql FROM sqlite_master WHERE type = 'index' ORDER BY 1, 2, 3",
    postgresql="SELECT CAST(tablename AS text), CAST(indexname AS text), indexdef"
    " FROM pg_indexes WHERE schemaname = current_schema() ORDER BY 1, 2",
)


#: A value of each type of columns that texts cannot be.
_EMPTY = {"blob": b"", "bytea": b"", "boolean": False, "integer": 0, "bigint": 0, "text": "{}"}


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    is_required: bool
    default: str | None
    is_key: bool
    references: str | None

    @property
    def is_serial(self) -> bool:
        return self.is_key and self.name == "seq"

    def a_value(self, parent: str) -> Any:
        """A value that the column accepts."""
        if self.references or self.is_key:
            return parent if self.type.lower() not in ("integer", "bigint") else 1
        if not self.is_required:
            return None
        return _EMPTY.get(self.type.lower(), "")


def table_names(tx: Any) -> list[str]:
    return [name for (name,) in tx.fetch_all(_TABLES, {})]


def columns(tx: Any, table: str) -> dict[str, Column]:
    references = {name: of for name, of, _ in tx.fetch_all(_REFERENCES, {"table": table})}
    return {
        name: Column(name, kind, bool(required), default, bool(key), references.get(name))
        for name, kind, required, default, key in tx.fetch_all(_COLUMNS, {"table": table})
    }


def describe(store: Any) -> dict[str, Any]:
    """Everything that two equal schemas have in common."""
    with store.read() as tx:
        return {
            "indexes": [tuple(row) for row in tx.fetch_all(_INDEXES, {})],
            **{
                name: (columns(tx, name), [tuple(row) for row in tx.fetch_all(_REFERENCES, {"table": name})])
                for name in table_names(tx)
            },
        }


def add_parents(tx: Any, table: str) -> None:
    """Insert the rows that a row of this table refers to, with the id ``parent``."""
    for column in columns(tx, table).values():
        if column.references is not None:
            parent = column.references
            add_parents(tx, parent)
            if tx.scalar(sql(f"SELECT 1 FROM {parent} WHERE id = 'parent'"), {}) is None:
                row = {c.name: c.a_value("parent") for c in columns(tx, parent).values() if not c.is_serial}
                tx.execute_fast(insert(parent, *row), row | {"id": "parent"})


def read_rows(tx: Any, table: str) -> list[dict[str, Any]]:
    """All rows of a table."""
    names = list(columns(tx, table))
    selected = ", ".join(quote(name) for name in names)
    return [dict(zip(names, row, strict=True)) for row in tx.fetch_all(sql(f"SELECT {selected} FROM {table}"), {})]


def add_resource(store: Any, *, stack_id: str, resource_id: str) -> None:
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
