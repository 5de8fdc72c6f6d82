"""
Queries about the whole site: shared properties, figures that operators monitor, the sizes of the tables, and orphans,
which are queues, containers and objects of embedded services whose owner no longer exists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from stoker.model.embedded import Queue
from stoker.store import jobs, rows
from stoker.store.migrate import expected_columns
from stoker.store.query import execute, scalar, table
from stoker.store.queues import QUEUES
from stoker.store.servers import STATUS
from stoker.store.sql import compose, sql
from stoker.store.tx import Tx

#: Return the value of a property, which all processes on this database share, or None if it is not set.
get_property: Callable[[Tx, str], str | None] = scalar("SELECT value FROM site_properties WHERE name = :name")
_add_property: Callable[[Tx, str, str], None] = execute(
    "INSERT INTO site_properties (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING"
)
#: Set a property, and overwrite any previous value.
replace_property: Callable[[Tx, str, str], None] = execute(
    "INSERT INTO site_properties (name, value) VALUES (:name, :value)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_SERVERS = sql(f"SELECT {STATUS}, count(*) FROM servers GROUP BY 1")
#: The kind of the database, its bytes, and those of SQLite's free pages.
_DATABASE = sql(
    "SELECT 'sqlite', page_count * page_size, freelist_count * page_size"
    " FROM pragma_page_count(), pragma_page_size(), pragma_freelist_count()",
    postgresql="SELECT 'postgresql', pg_database_size(current_database()), 0",
)
#: Whether the database tells the sizes: SQLite does if it was built with a virtual table.
_TELLS_SIZES = sql("SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'", postgresql="SELECT 1")
_SIZES = sql(
    """SELECT m.tbl_name, SUM(CASE WHEN m.type = 'table' THEN s.pgsize ELSE 0 END),
        SUM(CASE WHEN m.type = 'index' THEN s.pgsize ELSE 0 END)
    FROM (SELECT name, SUM(pgsize) AS pgsize FROM dbstat GROUP BY name) AS s
    JOIN sqlite_master AS m ON m.name = s.name GROUP BY m.tbl_name""",
    postgresql="SELECT relname, pg_table_size(relid), pg_indexes_size(relid) FROM pg_stat_user_tables"
    " WHERE schemaname = current_schema()",
)


@dataclass(frozen=True, slots=True)
class SiteFigures:
    """The figures at one time. All processes of a site read the same."""

    servers: Mapping[str, int]
    jobs: jobs.Backlog
    database_bytes: int


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


def add_property(tx: Tx, name: str, value: str) -> str:
    """Set a property unless it has a value. Return its value, which another process may have set."""
    _add_property(tx, name, value)
    return get_property(tx, name) or value


def read_figures(tx: Tx, offline_after: timedelta) -> SiteFigures:
    """Read the figures. ``offline_after`` is the time without a heartbeat after which a server is OFFLINE."""
    since = rows.to_micros(tx.now - offline_after)
    return SiteFigures(
        servers={status: int(count) for status, count in tx.fetch_all(_SERVERS, {"online_since": since})},
        jobs=jobs.backlog(tx),
        database_bytes=int(tx.execute_fast(_DATABASE, {})[1]),
    )


def read_sizes(tx: Tx) -> DatabaseSize:
    """Read the sizes. Takes a time that grows with the database, because all rows are counted."""
    stored = tx.fetch_all(_SIZES, {}) if tx.scalar(_TELLS_SIZES, {}) else ()
    sizes: dict[str, tuple[int, int]] = {name: (int(table), int(index)) for name, table, index in stored}
    dialect, total, free = tx.execute_fast(_DATABASE, {})
    names = {table for table, _ in expected_columns()} - {"schema_version"}
    counts = {name: tx.scalar(compose(f"SELECT count(*) FROM {name}"), {}) for name in names}
    tables = [TableSize(name, int(count), *sizes.get(name, (None, None))) for name, count in counts.items()]
    tables.sort(key=lambda table: (-(table.table_bytes or 0) - (table.index_bytes or 0), -table.rows, table.name))
    return DatabaseSize(dialect, int(total), int(free), tables)


_LIVE_STACK = "EXISTS (SELECT 1 FROM stacks s WHERE s.id = {owner} AND s.deleted_at IS NULL)"
#: The owner is set but is no existing resource, server, deployment or stack.
_ORPHANED = (
    "{owner} IS NOT NULL"
    " AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = {owner})"
    " AND NOT EXISTS (SELECT 1 FROM servers v WHERE v.id = {owner})"
    " AND NOT EXISTS (SELECT 1 FROM deployments d WHERE d.id = {owner})"
    f" AND NOT {_LIVE_STACK}"
)
#: Return the orphaned queues, sorted by project and name.
orphaned_queues: Callable[[Tx], list[Queue]] = QUEUES.lister(
    f"{_ORPHANED.format(owner='queues.owner')} ORDER BY project_id, name"
)
#: Return the orphaned containers: (account, name).
orphaned_containers: Callable[[Tx], list[tuple[str, str]]] = table(
    f"SELECT account, name FROM containers WHERE {_ORPHANED.format(owner='containers.owner')} ORDER BY account, name"
)
#: Return the orphaned objects in containers that still have an owner: (account, container, name). A stack's container
#: has the objects of resources that signal by objects. Their names begin with the resource's id.
orphaned_objects: Callable[[Tx], list[tuple[str, str, str]]] = table(
    "SELECT o.account, o.container, o.name FROM objects o"
    " JOIN containers c ON c.account = o.account AND c.name = o.container"
    f" WHERE {_LIVE_STACK.format(owner='c.owner')} AND length(o.name) >= 36"
    " AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.id = substr(o.name, 1, 36))"
    " ORDER BY o.account, o.container, o.name"
)
