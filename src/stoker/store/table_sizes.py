"""The sizes of the database's tables."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from stoker.store.schema import metadata
from stoker.store.tx import Tx

#: Whether SQLite was built with the virtual table that has the sizes.
_HAS_DBSTAT = sa.text("SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'")
_SQLITE = sa.text(
    "SELECT m.tbl_name, SUM(CASE WHEN m.type = 'table' THEN s.pgsize ELSE 0 END),"
    " SUM(CASE WHEN m.type = 'index' THEN s.pgsize ELSE 0 END)"
    " FROM (SELECT name, SUM(pgsize) AS pgsize FROM dbstat GROUP BY name) AS s"
    " JOIN sqlite_master AS m ON m.name = s.name GROUP BY m.tbl_name"
)
_SQLITE_WHOLE = sa.text(
    "SELECT page_count * page_size, freelist_count * page_size"
    " FROM pragma_page_count(), pragma_page_size(), pragma_freelist_count()"
)
_POSTGRESQL = sa.text(
    "SELECT relname, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables"
    " WHERE schemaname = current_schema()"
)
_POSTGRESQL_WHOLE = sa.text("SELECT pg_database_size(current_database()), 0")
_COUNT = {table.name: sa.select(sa.func.count()).select_from(table) for table in metadata.sorted_tables}


@dataclass(frozen=True, slots=True)
class TableSize:
    """
    A table's number of rows, and the bytes of its rows and of its indexes, with the space of deleted rows.

    None: this SQLite does not tell the sizes.
    """

    name: str
    rows: int
    table_bytes: int | None
    index_bytes: int | None


@dataclass(frozen=True, slots=True)
class DatabaseSize:
    """The size of the database, and its tables, largest first. ``free_bytes`` are those of SQLite's free pages."""

    dialect: str
    total_bytes: int
    free_bytes: int
    tables: list[TableSize]


def read(tx: Tx) -> DatabaseSize:
    """Read the sizes. Takes a time that grows with the database, because all rows are counted."""
    dialect = tx.connection.dialect.name
    of_tables, of_whole = (_SQLITE, _SQLITE_WHOLE) if dialect == "sqlite" else (_POSTGRESQL, _POSTGRESQL_WHOLE)
    sizes: dict[str, tuple[int, int]] = {}
    if dialect != "sqlite" or tx.scalar(_HAS_DBSTAT, {}):
        sizes = {name: (int(table), int(index)) for name, table, index in tx.fetch_all(of_tables, {})}
    total, free = tx.fetch_all(of_whole, {})[0]
    tables = [
        TableSize(name, int(tx.scalar(count, {})), *sizes.get(name, (None, None))) for name, count in _COUNT.items()
    ]
    tables.sort(key=lambda table: (-(table.table_bytes or 0) - (table.index_bytes or 0), -table.rows, table.name))
    return DatabaseSize(dialect, int(total), int(free), tables)
