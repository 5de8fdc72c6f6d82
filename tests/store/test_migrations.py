"""Migrations lead to the tables the program knows, and never past what it knows."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from stoker.model.errors import Conflict
from stoker.store import migrate, schema
from stoker.store.open import Store
from stoker.store.postgresql import driver_url
from support import databases
from support.processes import running


def emptied(url: str) -> str:
    """A database without any table."""
    store = Store(url)
    with store.engine.begin() as connection:
        if store.dialect == "postgresql":
            connection.exec_driver_sql("DROP SCHEMA public CASCADE")
            connection.exec_driver_sql("CREATE SCHEMA public")
        else:
            for name in sa.inspect(connection).get_table_names():
                connection.exec_driver_sql(f'DROP TABLE "{name}"')
    assert sa.inspect(store.engine).get_table_names() == []
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


def differences(store: Store) -> list[object]:
    options = {"compare_type": True, "compare_server_default": True}
    with store.engine.connect() as connection, warnings.catch_warnings():
        # SQLite does not have the index on labels, and its indexes on expressions cannot be compared.
        warnings.filterwarnings("ignore", "autogenerate skipping metadata-specified expression-based index")
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, schema.metadata))


def test_migrations_lead_to_the_schema(empty):
    store = Store(empty)
    assert differences(store) != []
    migrate.upgrade(store.engine)
    assert differences(store) == []
    store.close()


def test_the_comparison_detects_a_column_without_migration(store):
    with store.engine.begin() as connection:
        connection.exec_driver_sql("ALTER TABLE servers DROP COLUMN hostname")
    assert len(differences(store)) == 1


def test_migrating_again_is_harmless(store):
    store.write(
        lambda tx: (
            tx.run(
                sa.insert(schema.projects),
                {"id": "a", "name": "a", "domain_id": "d", "description": "kept", "enabled": True},
            )
            and None
        )
    )
    for _ in range(2):
        migrate.upgrade(store.engine)
    assert differences(store) == []
    with store.read() as tx:
        assert tx.run(sa.select(schema.projects.c.description)).scalars().all() == ["kept"]


def test_a_database_of_a_newer_version_is_refused_and_unchanged(store):
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for _ in range(2):
        with pytest.raises(Conflict, match="'9999'"):
            migrate.upgrade(store.engine)
    with store.read() as tx:
        assert tx.run(sa.text("SELECT version_num FROM alembic_version")).scalars().all() == ["9999"]
    store.write(lambda tx: tx.run(sa.delete(schema.projects)) and None)  # and nothing is held


_UPGRADE = """
import sys
from stoker.store import migrate
from stoker.store.open import Store
print("ready", flush=True)
sys.stdin.readline()
store = Store(sys.argv[1])
migrate.upgrade(store.engine)
store.close()
"""


@pytest.mark.slow
def test_several_processes_may_migrate_at_once(empty_postgresql):
    command, pipe = [sys.executable, "-c", _UPGRADE, empty_postgresql], subprocess.PIPE
    with ExitStack() as processes:
        started = [
            processes.enter_context(running(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)) for _ in range(3)
        ]
        for each in started:
            assert each.stdout.readline() == "ready\n"
        for each in started:
            each.stdin.write("\n")
            each.stdin.flush()
        ended = [each.communicate(timeout=60) for each in started]
    assert [each.returncode for each in started] == [0, 0, 0], ended
    store = Store(empty_postgresql)
    assert differences(store) == []
    store.close()


def test_a_migration_waits_for_a_running_one(empty_postgresql):
    engine = sa.create_engine(driver_url(empty_postgresql))
    command = [sys.executable, "-c", _UPGRADE, empty_postgresql]
    with engine.connect() as other, running(command, stdin=subprocess.PIPE, text=True) as waiting:
        other.exec_driver_sql(f"SELECT pg_advisory_lock({migrate._LOCK})")
        waiting.stdin.write("\n")
        waiting.stdin.flush()
        for _ in range(2000):
            found = other.exec_driver_sql(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
                " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
            ).scalar_one()
            if found:
                break
            other.exec_driver_sql("SELECT pg_sleep(0.01)")
        assert found == 1
        assert sa.inspect(other).get_table_names() == []
        other.exec_driver_sql(f"SELECT pg_advisory_unlock({migrate._LOCK})")
        other.commit()
        waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert "stacks" in sa.inspect(engine).get_table_names()
    engine.dispose()
