"""A Stoker for one measurement, on a database of its own."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from bench.api import Api, variables
from bench.measure import tree
from bench.processes import free_port, until_healthy

STOKER = [sys.executable, "-m", "stoker_client.cli.main"]
#: Seconds until a Stoker answers, and until it has stopped.
_START, _STOP = 60.0, 60.0


class Stoker:
    """``stoker serve`` with the options ``words`` on a port of its own; ``database``: a URL, or SQLite."""

    def __init__(self, folder: Path, database: str | None, words: Sequence[str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.database = database
        self.folder = folder
        # The log has a line for each enrolled server; warnings and errors belong to the output of the measurement.
        place = ["--port", str(self.port), "--state-dir", str(folder), "--no-clouds-yaml", "--log-level", "warning"]
        self._command = [*STOKER, "serve", *place, *words]
        self.start()

    def api(self) -> Api:
        """Log in as the administrator."""
        command = [*STOKER, "env", "--state-dir", str(self.folder)]
        exports = subprocess.run(command, check=True, capture_output=True, text=True)
        return Api(variables(exports.stdout))

    def pids(self) -> list[int]:
        """Return the ids of the processes that serve requests, in the order of their start."""
        children = sorted(tree([self.process.pid]) - {self.process.pid})
        return children or [self.process.pid]

    def stop(self) -> None:
        """Stop regularly, and wait for the end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(_STOP)

    def kill(self) -> None:
        """End the process as a crash does."""
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        """Start, and wait for the first answer."""
        # A variable, because the URL may have a password.
        variables = {"STOKER_CONFIG": "", **({"STOKER_DATABASE": self.database} if self.database else {})}
        self.process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
        until_healthy(f"{self.url}/healthz", _START)

    def database_pids(self) -> list[int]:
        """Return the ids of PostgreSQL's processes for this database, if it runs on this machine."""
        if not self.database:
            return []
        name = f" {urlsplit(self.database).path.strip('/')} ".encode()
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                title = entry.joinpath("cmdline").read_bytes() if entry.name.isdigit() else b""
                if title.startswith(b"postgres: ") and name in title:
                    found.append(int(entry.name))
        return found


@contextlib.contextmanager
def running_stoker(server: str | None, *words: str) -> Iterator[Stoker]:
    """
    Yield a Stoker with more options of ``stoker serve``.

    ``server``: the URL of a PostgreSQL server, on which a database is created and dropped; None: SQLite.
    """
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="stoker-bench-"))
        database = stack.enter_context(temporary_database(server)) if server else None
        stoker = Stoker(Path(folder), database, words)
        try:
            yield stoker
        finally:
            if stoker.process.poll() is None:
                stoker.stop()


@contextlib.contextmanager
def temporary_database(server: str) -> Iterator[str]:
    """Create a database on a PostgreSQL server, yield its URL, and drop the database."""
    name = f"stoker_bench_{secrets.token_hex(4)}"
    parts = urlsplit(server)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield parts._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
