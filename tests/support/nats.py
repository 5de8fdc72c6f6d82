"""A NATS server that tests stop, suspend and start again."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass

from support.installations import missing
from support.ports import free_port

_START_SECONDS = 60


def find_nats_server() -> str:
    """Return the path of nats-server. Without one, skip the test, or fail it in CI."""
    program = shutil.which("nats-server", path="/usr/sbin:/usr/local/bin:/usr/bin")
    if program is None:
        missing("nats-server is not installed: run `apt-get install nats-server`")
    return str(program)


@dataclass
class NatsServer:
    """A process of nats-server on loopback."""

    program: str
    port: int
    process: subprocess.Popen[bytes] | None = None

    @classmethod
    def create(cls) -> NatsServer:
        """Return a server that does not run yet."""
        return cls(find_nats_server(), free_port())

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        command = [self.program, "--addr", "127.0.0.1", "--port", str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert time.monotonic() < end, "nats-server does not answer"
                time.sleep(0.02)
            else:
                return

    def suspend(self) -> None:
        """Keep the connections open, but do not answer any more."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def stop(self) -> None:
        """Kill the server, if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None
