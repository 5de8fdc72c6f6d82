"""A TCP relay in front of a server, which can become unreachable and return."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.server import free_port


class Relay:
    """Forwards connections from ``port`` to the port ``target`` of this machine."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self._target = target
        self._listening: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def come(self) -> None:
        """Start accepting connections."""
        self._listening = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listening,), daemon=True).start()

    def go(self) -> None:
        """Stop accepting connections, and cut the open ones."""
        listening, self._listening = self._listening, None
        if listening is None:
            return
        with self._lock:
            for connection in (listening, *self._open):
                _cut(connection)
            self._open.clear()

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                with self._lock:
                    if self._listening is not listening:
                        _cut(near)
                        _cut(far)
                        return
                    self._open |= {near, far}
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):
            _cut(end)


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def relay(target: int) -> Iterator[Relay]:
    """Yield a relay that accepts connections."""
    relayed = Relay(target)
    relayed.come()
    try:
        yield relayed
    finally:
        relayed.go()
