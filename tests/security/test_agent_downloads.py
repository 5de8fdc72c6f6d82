"""What a service that an agent asks may do to it: answers without end, and redirects that collect its credentials."""

from __future__ import annotations

import socket
import ssl

import pytest

from stoker_agent.transports.base import Making
from stoker_agent.transports.url import Request
from stoker_agent.web import DOCUMENT, Limit, Refused, Web
from support.certificates import Authority
from support.raw import answering_bytes

SECRETS = {"Authorization": "Bearer key", "X-Auth-Token": "token"}


@pytest.mark.parametrize("length", [None, 2**40])
def test_an_answer_without_end_is_refused_at_its_limit(length):
    sent = 0

    def answer(connection: socket.socket) -> None:
        nonlocal sent
        connection.recv(65536)
        header = "" if length is None else f"Content-Length: {length}\r\n"
        connection.sendall(f"HTTP/1.1 200 OK\r\n{header}\r\n".encode())
        while True:
            sent += connection.send(bytes(2**20))

    with answering_bytes(answer) as port:
        source = Request({"metadata_url": f"http://127.0.0.1:{port}/object"}, Making())
        with pytest.raises(Refused, match=f"the document of 127.0.0.1:{port} has more than {DOCUMENT.most} bytes"):
            source.fetch(0)
        source.close()
    assert sent < DOCUMENT.most + 16 * 2**20


def test_every_answer_has_a_limit():
    with answering_bytes(lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + bytes(1001))) as port:
        web = Web()
        with pytest.raises(Refused, match=r"the program of .* has more than 1000 bytes"):
            web.call("GET", f"http://127.0.0.1:{port}/", limit=Limit("the program", 1000))


def test_a_redirect_from_https_to_http_does_not_keep_credentials(tmp_path):
    files = Authority.of_loopback(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    received = []

    def answer(connection: socket.socket) -> None:
        """Redirect a request over TLS to the same host and port without TLS."""
        if connection.recv(1, socket.MSG_PEEK) == b"\x16":
            with context.wrap_socket(connection, server_side=True) as secure:
                received.append(secure.recv(65536).decode())
                target = f"Location: http://127.0.0.1:{port}/plain\r\n"
                secure.sendall(f"HTTP/1.1 307 Go\r\n{target}Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
        else:
            received.append(connection.recv(65536).decode())
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")

    with answering_bytes(answer) as port:
        assert Web(str(files.file)).call("GET", f"https://127.0.0.1:{port}/", headers=SECRETS).body == b"ok"
    first, second = received
    assert all(secret in first for secret in SECRETS.values())
    assert not any(secret in second for secret in SECRETS.values())
