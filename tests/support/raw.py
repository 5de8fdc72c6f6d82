"""HTTP as bytes on a socket, for requests that client libraries cannot send."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from support.server import Answer, Served

#: Seconds that an answer may take before the test fails.
PATIENCE = 60.0


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


def read_answer(connection: socket.socket) -> Answer:
    """Return the next answer, after which none may have been sent yet."""
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return Answer(answer.status, answer.headers, answer.read())


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
