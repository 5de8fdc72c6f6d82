"""
Create the tables of a database, or migrate them to those of this version; refuse any other schema.

``schema.sql`` is the whole schema, from which a new database is created. For existing databases, each change of it is a
migration, ``migrations/0002.sql`` and so on; the schema of the first release is version 1. A test proves that the
migrations lead to ``schema.sql``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from stoker.model.errors import Conflict
from stoker.store.connection import is_fault
from stoker.store.sql import expand

#: An arbitrary key, the same in every Stoker: only one process migrates at a time.
_LOCK = 7_310_544_202
SCHEMA = Path(__file__).with_name("schema.sql")
MIGRATIONS = Path(__file__).with_name("migrations")
_COLUMNS = {
    "postgresql": "SELECT table_name, column_name FROM information_schema.columns"
    " JOIN information_schema.tables USING (table_schema, table_name)"
    " WHERE table_schema = current_schema() AND table_type = 'BASE TABLE'",
    "sqlite": "SELECT m.name, c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c"
    " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'",
}
#: A connection of the database's driver.
_Connection = Any


def upgrade(connection: _Connection, dialect: str, schema: Path = SCHEMA, migrations: Path = MIGRATIONS) -> None:
    """
    Create or migrate the tables. ``connection`` is that of the driver of the database ``dialect``.

    Raises Conflict if a newer version has migrated the database, or if its tables are not those of ``schema``: a
    version before the first release may have made them. A refused database stays unchanged.
    """
    scripts = {int(path.stem): path for path in migrations.glob("*.sql")}
    latest = max(scripts, default=1)
    with _transaction(connection, dialect) as run:
        version = _find_version(run, dialect)
        if version is None:
            run(schema)
            run(f"INSERT INTO schema_version VALUES ({latest})")
        elif version > latest:
            raise Conflict(
                f"cannot use this database: it is at version {version} of the schema, which a newer Stoker made;"
                " upgrade Stoker, or restore the database from before"
            )
        elif version < latest:
            for number in range(version + 1, latest + 1):
                run(scripts[number])
            run(f"UPDATE schema_version SET version = {latest}")
        _refuse_altered(_read_columns(run, dialect), schema)


def statements_of(script: Path, dialect: str) -> Iterator[str]:
    """Yield the statements of a file in the form of one database."""
    statement = ""
    for line in re.sub(r"(?m)--.*$", "", script.read_text()).splitlines():
        statement += f"{expand(line, dialect)}\n"
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""


class _Script:
    """Executes statements, and the files of a schema, in one transaction."""

    def __init__(self, connection: _Connection, dialect: str) -> None:
        self._connection, self._dialect = connection, dialect

    def __call__(self, source: str | Path) -> list[Any]:
        if isinstance(source, str):
            rows = self._connection.execute(source)
            return rows.fetchall() if rows.description else []
        try:
            for statement in statements_of(source, self._dialect):
                self._connection.execute(statement)
        except (sqlite3.OperationalError, psycopg.ProgrammingError) as error:
            if is_fault(error):
                raise
            raise _other_schema(str(error).splitlines()[0]) from error
        return []


@contextmanager
def _transaction(connection: _Connection, dialect: str) -> Iterator[_Script]:
    """Begin a transaction that waits for those of other processes that migrate."""
    run = _Script(connection, dialect)
    if dialect == "postgresql":
        run("BEGIN")
        run(f"SELECT pg_advisory_xact_lock({_LOCK})")
    else:
        # SQLite alters a table by copying and dropping it. With foreign keys enabled, this would delete the rows that
        # refer to it.
        run("PRAGMA foreign_keys = OFF")
        run("BEGIN IMMEDIATE")
    try:
        yield run
        connection.commit()
    finally:
        connection.rollback()
        if dialect == "sqlite":
            run("PRAGMA foreign_keys = ON")


def _find_version(run: _Script, dialect: str) -> int | None:
    """Return the version of the schema; None for an empty database. Raises Conflict for tables without a version."""
    tables = {table for table, _ in _read_columns(run, dialect)}
    if "schema_version" in tables:
        return int(run("SELECT version FROM schema_version")[0][0])
    if "stacks" in tables:
        raise _other_schema("it states no version")
    return None


def _read_columns(run: _Script, dialect: str) -> set[tuple[str, str]]:
    return {(table, column) for table, column in run(_COLUMNS[dialect])}


def _refuse_altered(present: set[tuple[str, str]], schema: Path) -> None:
    expected = expected_columns(schema)
    tables = {table for table, _ in expected}
    unknown = {(table, column) for table, column in present - expected if table in tables}
    for problem, columns in (
        ("the column {1} of table {0} is missing", expected - present),
        ("table {0} has an unknown column {1}", unknown),
    ):
        if columns:
            raise _other_schema(problem.format(*min(columns)))


def expected_columns(schema: Path = SCHEMA) -> set[tuple[str, str]]:
    """Return (table, column) of every column of the schema."""
    connection = sqlite3.connect(":memory:")
    run = _Script(connection, "sqlite")
    run(schema)
    columns = _read_columns(run, "sqlite")
    connection.close()
    return columns


def _other_schema(problem: str) -> Conflict:
    return Conflict(
        f"cannot use this database: its schema is not the one of this version ({problem}); another version of Stoker,"
        " from before a release, created it. Run that version, or name an empty database (--database, or another"
        " --state-dir)"
    )
