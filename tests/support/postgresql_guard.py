"""
Starts PostgreSQL from binaries that pip installed, and ends it when the last process that uses it has ended.

Arguments are a folder and the folder of the binaries. The program ends when the server answers. It leaves a process
that waits for a lock which every user of the server holds. The kernel releases the lock when a user ends in any way.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: No test database needs to survive a power failure.
_QUICK = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400", "max_wal_size=256MB")
#: A new database consists of several hundred files, which takes twenty times as long on a disk.
_IN_MEMORY, _ROOM = Path("/dev/shm"), 2 * 1024**3

#: PostgreSQL refuses to run as root.
_USER = "nobody" if os.getuid() == 0 else None
_WHO: dict[str, Any] = {"user": _USER, "group": None, "extra_groups": [] if _USER else None, "cwd": "/"}


def main() -> None:
    folder, binaries = map(Path, sys.argv[1:])
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading) as pipe:
            sys.exit(pipe.read() or 0)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in range(3):
        os.dup2(nothing, file)
    try:
        server = start(folder, binaries)
    except Exception as error:
        os.write(writing, f"cannot start PostgreSQL in {folder}: {error}".encode())
        os._exit(1)
    os.close(writing)
    with folder.joinpath("users").open() as users:
        fcntl.flock(users, fcntl.LOCK_EX)  # waits until the last user has ended
        server.send_signal(signal.SIGINT)
        server.wait()
        folder.joinpath("running").unlink()
        _remove(folder / "data")


def start(folder: Path, binaries: Path) -> subprocess.Popen[bytes]:
    data = folder / "data"
    _remove(data)
    if _IN_MEMORY.is_dir() and os.access(_IN_MEMORY, os.W_OK) and shutil.disk_usage(_IN_MEMORY).free > _ROOM:
        there = _IN_MEMORY / folder.name
        shutil.rmtree(there, ignore_errors=True)  # remains of a killed server
        there.mkdir(mode=0o700)
        data.symlink_to(there)
    binaries, log = readable_copy(binaries, folder / "program"), folder / "log"
    create(binaries, data, log)
    settings = [word for setting in _QUICK for word in ("-c", setting)]
    sockets = ["-k", str(data), "-c", "listen_addresses=", "-c", "unix_socket_permissions=0700"]
    server = spawn(binaries, data, [*sockets, *settings], log)
    while not _ready(data):
        if server.poll() is not None:
            raise RuntimeError(f"it ended with {server.returncode}; see {log}")
        time.sleep(0.01)
    return server


def create(binaries: Path, data: Path, log: Path) -> None:
    """Create the data of a server."""
    data.mkdir(mode=0o700, exist_ok=True)
    if _USER:
        shutil.chown(data, _USER)
    words = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "-N"]
    with log.open("ab") as output:
        subprocess.run([binaries / "initdb", "-D", data, *words], check=True, stdout=output, stderr=output, **_WHO)


def spawn(binaries: Path, data: Path, words: list[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a server."""
    with log.open("ab") as output:
        return subprocess.Popen([binaries / "postgres", "-D", data, *words], stdout=output, stderr=output, **_WHO)


def _remove(data: Path) -> None:
    shutil.rmtree(data.resolve(), ignore_errors=True)
    if data.is_symlink():
        data.unlink()


def _ready(data: Path) -> bool:
    try:
        return data.joinpath("postmaster.pid").read_text().split("\n")[7].strip() == "ready"
    except (FileNotFoundError, IndexError):
        return False


def readable_copy(binaries: Path, target: Path) -> Path:
    """
    Copy the binaries if another user runs them, who cannot read a virtual environment below /root. Libraries are found
    by their relative paths.
    """
    if not _USER:
        return binaries
    package = binaries.parent.parent
    if not target.exists():
        fresh = target.with_name(f"program.{os.getpid()}")
        for part in (binaries.parent, package.with_name(f"{package.name}.libs")):
            if part.exists():
                shutil.copytree(
                    part,
                    fresh / part.relative_to(package.parent),
                    ignore=shutil.ignore_patterns("include"),
                    symlinks=True,
                )
        fresh.rename(target)
    return target / binaries.relative_to(package.parent)


if __name__ == "__main__":
    main()
