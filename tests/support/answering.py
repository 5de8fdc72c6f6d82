"""A true HTTP server that a test answers for: what it was asked is in a list, what it says is decided by a function."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Asked:
    verb: str
    path: str
    query: Mapping[str, str]
    #: By lower-case names.
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Said:
    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Taken, and the connection closed without an answer.
    lost: bool = False

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class Answering:
    def __init__(self, decide: Callable[[Asked], Said]) -> None:
        self.decide = decide
        self.asked: list[Asked] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.block_on_close = False
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def verbs(self) -> list[str]:
        return [each.verb for each in self.asked]

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        world = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def answer(self) -> None:
                parts = urlsplit(self.path)
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
                world.asked.append(asked)
                said = world.decide(asked)
                if said.lost:
                    self.close_connection = True
                    return
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                empty = said.status in (204, 304)
                if not empty:
                    self.send_header("Content-Length", str(len(said.raw)))
                self.end_headers()
                if not empty and self.command != "HEAD":
                    self.wfile.write(said.raw)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = answer

        return Handler


@contextmanager
def answering(decide: Callable[[Asked], Said]) -> Iterator[Answering]:
    made = Answering(decide)
    try:
        yield made
    finally:
        made.close()
