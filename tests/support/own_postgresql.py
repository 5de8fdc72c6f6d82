"""A PostgreSQL server of one test, which the test kills, restarts, and whose disk it fills."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from support import waiting
from support.databases import postgresql_binaries
from support.disks import small_disk
from support.ports import free_port
from support.postgresql_guard import create, readable_copy, spawn
from support.processes import list_children

_DISK_MIB = 192
#: A small log leaves room on the small disk.
_SETTINGS = ("max_wal_size=48MB", "min_wal_size=32MB", "shared_buffers=32MB", "max_connections=100")


class OwnPostgresql:
    """The server's data are in ``folder``, a file system of its own if ``is_small``."""

    def __init__(self, folder: Path, *, is_small: bool) -> None:
        self.port = free_port()
        self._folder = folder
        self._is_small = is_small
        self._program = readable_copy(postgresql_binaries(), folder / "program")
        self.disk = folder / "disk"
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return self.url_at(self.port)

    def url_at(self, port: int, database: str = "postgres") -> str:
        """Return the URL of a database behind another port, such as that of a proxy."""
        return f"postgresql://postgres@127.0.0.1:{port}/{database}"

    def pids(self) -> list[int]:
        """Return the ids of the server's processes."""
        assert self._process is not None
        return [self._process.pid, *list_children(self._process.pid)]

    def create(self) -> None:
        """Create the data directory."""
        self.disk.mkdir(exist_ok=True)
        create(self._program, self.disk / "data", self._log)

    def start(self) -> None:
        """Start the server and wait until it answers. Start it again if it ends meanwhile, as systemd does."""
        for _ in waiting.attempts(60, lambda: self._log.read_text()[-3000:]):
            if self._process is None or self._process.poll() is not None:
                self._process = self._spawn()
            with contextlib.suppress(psycopg.OperationalError):
                psycopg.connect(self.url, connect_timeout=5).close()
                return

    def kill(self) -> None:
        """Kill the server. Its processes end as soon as they notice."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """End the server and all connections."""
        self._signal(signal.SIGINT)

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(60)

    def _spawn(self) -> subprocess.Popen[bytes]:
        # The machine does not crash, so a disk need not be synchronized. The small one is memory, where it is cheap.
        own = ("fsync=on" if self._is_small else "fsync=off",)
        settings = [word for setting in (*_SETTINGS, *own) for word in ("-c", setting)]
        words = ["-h", "127.0.0.1", "-p", str(self.port), "-k", "", *settings]
        return spawn(self._program, self.disk / "data", words, self._log)


@contextmanager
def own_postgresql(*, is_small: bool = False) -> Iterator[OwnPostgresql]:
    """Yield a running server with an empty database. ``is_small`` needs root: the test can fill the server's disk."""
    with contextlib.ExitStack() as cleanup:
        temporary = tempfile.TemporaryDirectory(prefix="stoker-test-pg-", ignore_cleanup_errors=True)
        folder = Path(cleanup.enter_context(temporary))
        folder.chmod(0o755)
        server = OwnPostgresql(folder, is_small=is_small)
        if is_small:
            cleanup.enter_context(small_disk(server.disk, _DISK_MIB))
        cleanup.callback(server.kill)
        server.create()
        server.start()
        yield server
