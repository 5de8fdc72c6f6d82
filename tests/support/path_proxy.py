"""A reverse proxy that serves another server below a path, and may collect each response before it passes it on."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP = frozenset(("connection", "keep-alive", "transfer-encoding", "content-length", "host"))


@contextmanager
def path_proxy(port: int, prefix: str, *, is_buffering: bool = False) -> Iterator[str]:
    """Serve ``port`` of this machine below ``prefix``, such as ``/stoker``, and yield the URL with the prefix."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            assert self.path.startswith(f"{prefix}/")
            length = int(self.headers.get("Content-Length") or 0)
            upstream = http.client.HTTPConnection("127.0.0.1", port)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            body = self.rfile.read(length) if length else None
            try:
                upstream.request(self.command, self.path.removeprefix(prefix), body, headers)
                self._answer(upstream.getresponse())
            finally:
                upstream.close()

        def _answer(self, response: http.client.HTTPResponse) -> None:
            collected = [response.read()] if is_buffering else None
            self.send_response(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if self.command != "HEAD":
                for piece in collected or iter(lambda: response.read1(65536), b""):
                    self.wfile.write(piece)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = forward

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(ConnectionError):  # a browser that closes a stream
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{prefix}"
    finally:
        server.shutdown()
        server.server_close()
