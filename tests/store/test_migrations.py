"""A new database has the tables of the schema, the migrations lead there, and no other database is touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stoker.model.errors import Conflict
from stoker.store import migrate
from stoker.store.open import Store
from stoker.store.sql import sql
from support import databases, tables
from support.processes import running
from support.waiting import until

#: The schema of version 1, which the migrations begin with: from the first migration on, a copy of the first release's
#: ``schema.sql``.
FIRST = Path(__file__).with_name("first_schema.sql")


def emptied(url: str) -> str:
    """A database without any table."""
    store = Store(url)

    def do(tx):
        if store.dialect == "postgresql":
            tx.execute_fast(sql("DROP SCHEMA public CASCADE"), {})
            tx.execute_fast(sql("CREATE SCHEMA public"), {})
        else:
            tx.execute_fast(sql("PRAGMA defer_foreign_keys = ON"), {})
            for name in tables.table_names(tx):
                tx.execute_fast(sql(f"DROP TABLE {name}"), {})

    store.write(do)
    assert tables.describe(store) == {"indexes": []}
    store.close()
    return url


@pytest.fixture
def empty(database_url) -> str:
    return emptied(database_url)


@pytest.fixture
def empty_postgresql(postgresql_server) -> Iterator[str]:
    """On SQLite the state directory's lock lets only one process near the file."""
    with databases.postgresql_url(postgresql_server) as url:
        yield emptied(url)


@pytest.fixture
def empty_store(empty) -> Iterator[Store]:
    store = Store(empty)
    yield store
    store.close()


def change(store: Store, statement: str) -> None:
    store.write(lambda tx: tx.execute_fast(sql(statement), {}))


def test_the_migrations_lead_to_the_schema(store, empty_postgresql, tmp_path):
    has_migrations = any(migrate.MIGRATIONS.glob("*.sql"))
    assert FIRST.exists() == has_migrations
    expected = tables.describe(store)
    assert len(expected) > 40
    url = empty_postgresql if store.dialect == "postgresql" else f"sqlite:///{tmp_path}/other.db"
    other = Store(url)
    upgrade(other, FIRST if has_migrations else migrate.SCHEMA, tmp_path)
    upgrade(other)
    assert tables.describe(other) == expected
    other.close()


def upgrade(store, *schema, **migrations):
    with store.session() as connection:
        migrate.upgrade(connection, store.dialect, *schema, **migrations)


def test_a_migration_changes_the_tables_and_keeps_their_rows(empty_store, tmp_path):
    """The second version has one more column, which the migrations add."""
    old, new = tmp_path / "old.sql", tmp_path / "new.sql"
    begin = "CREATE TABLE schema_version (version integer NOT NULL);\nCREATE TABLE stacks (seq @serial, name text"
    old.write_text(f"{begin});")
    new.write_text(f"{begin}, racks integer NOT NULL DEFAULT 3);\n@only_postgresql CREATE INDEX i ON stacks (name);")
    migrations = tmp_path / "migrations"
    migrations.mkdir()
    upgrade(empty_store, old, migrations)
    change(empty_store, "INSERT INTO stacks (name) VALUES ('a')")
    (migrations / "0002.sql").write_text("ALTER TABLE stacks ADD COLUMN racks integer NOT NULL DEFAULT 2;")
    (migrations / "0003.sql").write_text(
        "UPDATE stacks SET racks = 3; -- a comment; with a semicolon\n"
        "@only_postgresql ALTER TABLE stacks ALTER COLUMN racks SET DEFAULT 3;\n"
    )
    with pytest.raises(Conflict, match="the column racks of table stacks is missing"):
        upgrade(empty_store, new, tmp_path / "none")
    for _ in range(2):
        upgrade(empty_store, new, migrations)
    with empty_store.read() as tx:
        assert tables.read_rows(tx, "stacks") == [{"seq": 1, "name": "a", "racks": 3}]
        assert tables.read_rows(tx, "schema_version") == [{"version": 3}]


def test_a_new_database_needs_no_migration(empty_store, tmp_path):
    (tmp_path / "0007.sql").write_text("SELECT nothing;")
    upgrade(empty_store, migrations=tmp_path)
    with empty_store.read() as tx:
        assert tables.read_rows(tx, "schema_version") == [{"version": 7}]


def test_a_database_of_a_newer_version_is_refused_and_unchanged(store):
    change(store, "UPDATE schema_version SET version = 9999")
    for _ in range(2):
        with pytest.raises(Conflict, match="version 9999"):
            upgrade(store)
    with store.read() as tx:
        assert tables.read_rows(tx, "schema_version") == [{"version": 9999}]
    change(store, "DELETE FROM projects")  # and nothing is locked


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("ALTER TABLE servers DROP COLUMN hostname", "the column hostname of table servers is missing"),
        ("DROP TABLE site_properties", "of table site_properties is missing"),
        ("ALTER TABLE servers ADD COLUMN color TEXT", "table servers has an unknown column color"),
        ("DROP TABLE schema_version", "no version"),
    ],
)
def test_a_database_with_another_schema_is_refused_and_unchanged(store, statement, problem):
    change(store, statement)
    before = tables.describe(store)
    with pytest.raises(Conflict, match=f"{problem}.*Run that version"):
        upgrade(store)
    assert tables.describe(store) == before


def test_a_migration_that_fails_leaves_the_database_unchanged(store, tmp_path):
    (tmp_path / "0002.sql").write_text("ALTER TABLE servers ADD COLUMN rack text;\nDROP TABLE nothing;")
    before = tables.describe(store)
    with pytest.raises(Conflict, match=r"nothing.*Run that version"):
        upgrade(store, migrations=tmp_path)
    assert tables.describe(store) == before


_UPGRADE = """
import sys
from stoker.store import migrate
from stoker.store.open import Store
print("ready", flush=True)
sys.stdin.readline()
store = Store(sys.argv[1])
with store.session() as connection:
    migrate.upgrade(connection, store.dialect)
store.close()
"""


def test_a_migration_waits_for_a_running_one(empty_postgresql):
    command = [sys.executable, "-c", _UPGRADE, empty_postgresql]
    with (
        psycopg.connect(empty_postgresql.replace("+psycopg", ""), autocommit=True) as other,
        running(command, stdin=subprocess.PIPE, text=True) as waiting,
    ):
        other.execute(f"SELECT pg_advisory_lock({migrate._LOCK})")
        waiting.stdin.write("\n")
        waiting.stdin.flush()
        until(
            lambda: other.execute(
                "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
                " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
            ).fetchone()
        )
        assert other.execute("SELECT to_regclass('stacks')").fetchone() == (None,)
        other.execute(f"SELECT pg_advisory_unlock({migrate._LOCK})")
        waiting.communicate(timeout=60)
        assert waiting.returncode == 0
        assert other.execute("SELECT to_regclass('stacks')").fetchone() == ("stacks",)
