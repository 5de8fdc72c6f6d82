"""A real HTTP server that records requests and answers with the results of a function."""

from __future__ import annotations

import json
import ssl
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


class Answering:
    """
    The server. ``decide`` returns the answer to each request; ``asked`` lists the requests.

    With an ``authority``, it serves HTTPS with the certificate that the authority has issued last.
    """

    def __init__(self, decide: Callable[[Asked], Said], authority: Authority | None = None) -> None:
        self.decide = decide
        self._scheme = "http"
        self.asked: list[Asked] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.block_on_close = False
        if authority is not None:
            self._scheme = "https"
            tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            tls.load_cert_chain(authority.chain, authority.key)
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True)
            self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that does not trust it
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._http.server_address[1]}"

    @property
    def verbs(self) -> list[str]:
        return [request.verb for request in self.asked]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # headers and body are two packets, and a client delays its acknowledgment

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, parts.path, self.path, dict(parse_qsl(parts.query)), headers, body)
                world.asked.append(asked)
                said = world.decide(asked)
                if said.lost:
                    self.close_connection = True
                    return
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

        return Handler


@contextmanager
def answering(decide: Callable[[Asked], Said], authority: Authority | None = None) -> Iterator[Answering]:
    """Yield a running server."""
    server = Answering(decide, authority)
    try:
        yield server
    finally:
        server.close()
