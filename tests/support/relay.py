"""A TCP relay in front of a server, which can become unreachable and return."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.ports import free_port


class Relay:
    """Forwards connections from ``port`` to the port ``target`` of this machine."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.target = target
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

    def _lifetime(self) -> int | None:
        """Return the bytes of answers after which a new connection is cut; None for no limit."""
        return None

    def _accept(self, listening: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = listening.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", self.target))
                except ConnectionRefusedError:  # the server is away
                    _cut(near)
                    continue
                with self._lock:
                    if self._listening is not listening:
                        _cut(near)
                        _cut(far)
                        return
                    self._open |= {near, far}
                for route in ((near, far, None), (far, near, self._lifetime())):
                    threading.Thread(target=self._pass, args=route, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, limit: int | None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data[:limit])
                if limit is not None and (limit := limit - len(data)) <= 0:
                    break
        for end in (source, target):
            _cut(end)


class LossyRelay(Relay):
    """A relay that cuts a fifth of its connections early: often after the request has arrived, before its answer."""

    def _lifetime(self) -> int | None:
        return random.randrange(300) if random.random() < 0.2 else None


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


@contextmanager
def relay(target: int, kind: type[Relay] = Relay) -> Iterator[Relay]:
    """Yield a relay that accepts connections."""
    relayed = kind(target)
    relayed.come()
    try:
        yield relayed
    finally:
        relayed.go()
