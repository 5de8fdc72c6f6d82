"""An HTTP proxy that connects every name to this machine, and can ask for a login."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class HttpProxy:
    """``targets`` are the hosts that were asked for. ``login`` is ``user:password``, or empty."""

    port: int
    login: str = ""
    targets: list[str] = field(default_factory=list)
    refused: int = 0


@contextmanager
def http_proxy(login: str = "") -> Iterator[HttpProxy]:
    """Run a proxy on a loopback port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = HttpProxy(listener.getsockname()[1], login)
        threading.Thread(target=_accept, args=(listener, proxy), daemon=True).start()
        yield proxy


def _accept(listener: socket.socket, proxy: HttpProxy) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(connection, proxy), daemon=True).start()


def _serve(client: socket.socket, proxy: HttpProxy) -> None:
    with client, suppress(OSError):
        head = b""
        while b"\r\n\r\n" not in head:
            data = client.recv(65536)
            if not data:
                return
            head += data
        verb, target = head.split(b" ", 2)[:2]
        expected = b"Basic " + base64.b64encode(proxy.login.encode())
        if proxy.login and expected not in head:
            proxy.refused += 1
            client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        authority = target.decode() if verb == b"CONNECT" else target.decode().split("/")[2]
        proxy.targets.append(authority)
        with socket.create_connection(("127.0.0.1", int(authority.rpartition(":")[2]))) as server:
            if verb == b"CONNECT":
                client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            else:
                server.sendall(head)
            threading.Thread(target=_copy, args=(server, client), daemon=True).start()
            _copy(client, server)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
