"""A real HTTP server that records requests and answers with the results of a function."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from support.certificates import Authority


@dataclass(frozen=True)
class Asked:
    """A recorded request."""

    verb: str
    path: str
    #: The path with the query, as it was sent.
    target: str
    query: Mapping[str, str]
    #: By lower-case names.
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body) if self.body else None


@dataclass(frozen=True)
class Said:
    """The answer to a request."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: The server closes the connection without an answer.
    lost: bool = False
    #: The body in pieces, each sent when it is there. The connection closes after the last one, complete or not.
    stream: Iterator[bytes] | None = None

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


#: Headers that concern one connection only, or that ask for an encoding.
_HOP = ("accept-encoding", "connection", "content-length", "keep-alive", "transfer-encoding")


def forward(port: int, asked: Asked, prefix: str = "") -> Said:
    """Return the answer of a server of this machine, as a reverse proxy that serves it below ``prefix``."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {name: value for name, value in asked.headers.items() if name not in _HOP}
    connection.request(asked.verb, asked.target.removeprefix(prefix), asked.body or None, headers)
    answer = connection.getresponse()
    kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
    if "event-stream" in (answer.headers["Content-Type"] or ""):
        pieces = _pieces(connection, answer)
        next(pieces)  # begun, its end closes the connection, also if the client has gone and nobody reads it
        return Said(answer.status, headers=kept, stream=pieces)
    body = answer.read()
    connection.close()
    return Said(answer.status, body, kept)


def _pieces(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    """Yield nothing at first, then the pieces of the body, and an empty one at the end."""
    try:
        yield b""
        while piece := answer.read1(65536):
            yield piece
        yield b""
    finally:
        connection.close()


class Answering:
    """
    The server. ``decide`` returns the answer to each request; ``asked`` lists the requests.

    With an ``authority``, it serves HTTPS with the certificate that the authority has issued last. ``port`` 0 is any
    free port. ``errors`` lists what ``decide`` has raised.
    """

    def __init__(self, decide: Callable[[Asked], Said], authority: Authority | None = None, port: int = 0) -> None:
        self.decide = decide
        self._scheme = "http"
        self.asked: list[Asked] = []
        self.errors: list[BaseException] = []
        self._http = _Http(("127.0.0.1", port), self)
        if authority is not None:
            self._scheme = "https"
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(authority.chain, authority.key)
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self._http.server_address[1]

    @property
    def verbs(self) -> list[str]:
        return [request.verb for request in self.asked]

    def close(self) -> None:
        """Stop, and close all connections."""
        self._http.shutdown()
        self._http.server_close()
        for connection in list(self._http.open):
            with contextlib.suppress(OSError):  # the other side was first
                connection.shutdown(socket.SHUT_RDWR)


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], world: Answering) -> None:
        self.world = world
        self.open: set[socket.socket] = set()
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):  # an OSError: a client is gone, or trusts no server
            self.world.errors.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two packets, and a client delays its acknowledgment
    server: _Http

    def setup(self) -> None:
        super().setup()
        self.server.open.add(self.connection)

    def finish(self) -> None:
        self.server.open.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def answer(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if len(body) < length:  # the client was killed in the middle of a request
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.command, parts.path, self.path, dict(parse_qsl(parts.query)), headers, body)
        self.server.world.asked.append(asked)
        said = self.server.world.decide(asked)
        if said.lost:
            self.close_connection = True
        else:
            self._send(said)

    def _send(self, said: Said) -> None:
        self.send_response(said.status)
        if not isinstance(said.body, bytes) and "Content-Type" not in said.headers:
            self.send_header("Content-Type", "application/json")
        for name, value in said.headers.items():
            self.send_header(name, value)
        if said.stream is not None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.close_connection = True
            for piece in said.stream:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            return
        empty = said.status in (204, 304)
        if not empty:
            self.send_header("Content-Length", str(len(said.raw)))
        self.end_headers()
        if not empty and self.command != "HEAD":
            self.wfile.write(said.raw)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer


@contextmanager
def answering(decide: Callable[[Asked], Said], authority: Authority | None = None) -> Iterator[Answering]:
    """Yield a running server."""
    server = Answering(decide, authority)
    try:
        yield server
    finally:
        server.close()
