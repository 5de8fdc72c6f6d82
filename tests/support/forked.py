"""`stoker` and `openstack` as processes that are forked from one that has imported them; see ``fork_server``."""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from support.fork_server import INTEGER
from support.installations import plain_environment

_lock = threading.Lock()
_WARNINGS = {"stoker": "default", "openstack": "ignore"}


class Forked:
    """A forked process with the methods of ``subprocess.Popen``, except those for pipes."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        stdout: IO[bytes],
        stderr: IO[bytes],
        program: str = "stoker",
    ) -> None:
        self.args = words
        self.returncode: int | None = None
        self._lock = threading.Lock()
        request = {"words": list(words), "environment": dict(environment), "folder": str(Path.cwd())}
        self._pipe, pipe = os.pipe()
        try:
            with open(os.devnull, "rb") as nothing:
                streams = [nothing.fileno(), stdout.fileno(), stderr.fileno()]
                socket.send_fds(_fork_server(program), [json.dumps(request).encode()], [*streams, pipe])
        finally:
            os.close(pipe)
        number = os.read(self._pipe, INTEGER.size)
        assert number, "the fork server has ended"
        (self.pid,) = INTEGER.unpack(number)

    def __del__(self) -> None:
        os.close(self._pipe)

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                readable, _, _ = select.select([self._pipe], [], [], timeout)
                if not readable:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                number = os.read(self._pipe, INTEGER.size)
                self.returncode = INTEGER.unpack(number)[0] if number else -signal.SIGKILL
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(
    words: Sequence[str], environment: Mapping[str, str], timeout: float, program: str = "stoker"
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, and kill it after ``timeout`` seconds."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = Forked(words, environment, out, err, program)
        try:
            code = process.wait(timeout)
        finally:
            process.kill()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode().replace("\r\n", "\n"))
    return subprocess.CompletedProcess(list(words), code, *texts)


@functools.cache
def _start_fork_server(program: str) -> socket.socket:
    """Start a fork server. It ends when this process ends in any way."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("fork_server.py")), program, str(theirs.fileno())],
            # Without a home, because the `openstack` command searches the user's folders on import.
            env={**plain_environment(), "HOME": "/nonexistent", "PYTHONWARNINGS": _WARNINGS[program]},
            stdin=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


def _fork_server(program: str) -> socket.socket:
    with _lock:
        return _start_fork_server(program)
