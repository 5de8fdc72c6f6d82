"""The processes of what is measured: start one on a free port, wait until it serves, and end it."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress


def free_port() -> int:
    """Return a port that the system gives to no other program before it is used: they are above 32767."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as free, suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


def until_healthy(url: str, limit: float = 30) -> None:
    """Wait until ``url`` answers. Fails after ``limit`` seconds."""
    until = time.monotonic() + limit
    while True:
        try:
            urllib.request.urlopen(url, timeout=1).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def serving(command: Sequence[str], url: str, environment: Mapping[str, str] | None = None) -> Iterator[int]:
    """Run a server without its standard output, and yield its process id when ``url`` answers. End it afterwards."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **(environment or {})})
    try:
        until_healthy(url)
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=30)
