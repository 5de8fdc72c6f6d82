"""A Stoker for one measurement, on a database of its own."""

from __future__ import annotations

import contextlib
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.api import Api
from bench.measure import tree
from support.server import Served, served


def connect(stoker: Served) -> Api:
    """Log in as the administrator."""
    return Api(stoker.environment)


def list_workers(stoker: Served) -> list[int]:
    """Return the ids of the processes that serve requests, in the order of their start."""
    assert stoker.process is not None
    children = sorted(tree([stoker.process.pid]) - {stoker.process.pid})
    return children or [stoker.process.pid]


def list_sessions(stoker: Served) -> list[int]:
    """Return the ids of PostgreSQL's processes for this database, if it runs on this machine."""
    if not stoker.database:
        return []
    name = f" {urlsplit(stoker.database).path.strip('/')} ".encode()
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            title = entry.joinpath("cmdline").read_bytes() if entry.name.isdigit() else b""
            if title.startswith(b"postgres: ") and name in title:
                found.append(int(entry.name))
    return found


@contextlib.contextmanager
def running_stoker(server: str | None, *flags: str) -> Iterator[Served]:
    """
    Yield a Stoker with more options of ``stoker serve``.

    ``server``: the URL of a PostgreSQL server, on which a database is created and dropped; None: SQLite.
    """
    with contextlib.ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="stoker-bench-")))
        database = cleanup.enter_context(temporary_database(server)) if server else None
        # The log has a line for each enrolled server.
        flags = ("--log-level", "warning", *flags)
        yield cleanup.enter_context(served(folder, *flags, database=database, is_forked=False))


@contextlib.contextmanager
def temporary_database(server: str) -> Iterator[str]:
    """Create a database on a PostgreSQL server, yield its URL, and drop the database."""
    name = f"stoker_bench_{secrets.token_hex(4)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield urlsplit(server)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
