"""HTTP as bytes on a socket, for requests that client libraries cannot send."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from support.server import Answer, Served

#: Seconds that an answer may take before the test fails.
PATIENCE = 60.0


@dataclass
class RawAnswer:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


def request(
    stoker: Served, verb: str, path: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    """Send a request byte by byte as it is written, and return the answer: of an event stream, the head alone."""
    connection = http.client.HTTPConnection("127.0.0.1", stoker.port, timeout=PATIENCE)
    sent = dict(headers or {})
    try:
        connection.putrequest(verb, path, skip_host="Host" in sent, skip_accept_encoding=True)
        for name, value in sent.items():
            connection.putheader(name, value.encode(errors="surrogateescape"))
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        is_endless = answer.headers.get_content_type() == "text/event-stream"
        return Answer(answer.status, answer.headers, b"" if is_endless else answer.read())
    finally:
        connection.close()


def connect(stoker: Served, source: str = "127.0.0.1") -> socket.socket:
    """Open a connection from the address ``source``."""
    return socket.create_connection(("127.0.0.1", stoker.port), timeout=PATIENCE, source_address=(source, 0))


def read_answer(connection: socket.socket) -> RawAnswer:
    """Return the next answer. Its body has a Content-Length or ends with the connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        more = connection.recv(65536)
        assert more, f"the connection was closed after {received!r}"
        received += more
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    size = int(headers["content-length"]) if "content-length" in headers else None
    while size is None or len(body) < size:
        more = connection.recv(65536)
        if not more and size is None:
            break
        assert more, f"the connection was closed after {len(body)} of {size} bytes"
        body += more
    assert size is None or len(body) == size, "bytes of the next answer: read one at a time"
    return RawAnswer(int(first.split()[1]), headers, body)


def is_closed(connection: socket.socket) -> bool:
    """Wait for the server to close the connection. Return False if it sends data instead."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def send_all(connection: socket.socket, *parts: bytes) -> None:
    """Send as much as the server accepts; a server that refuses may close the connection early."""
    with suppress(ConnectionError):
        for part in parts:
            connection.sendall(part)


@contextmanager
def answering_bytes(answer: Callable[[socket.socket], None]) -> Iterator[int]:
    """Yield the port of a server that calls ``answer`` with each connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        answer(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(60)
