"""A network, or a service, that goes silent: how long that is borne, and how often it is asked again."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter
from keystoneauth1.noauth import NoAuth
from keystoneauth1.session import Session
from requests.adapters import HTTPAdapter

from stoker_client import wire
from stoker_client.errors import Unreachable
from stoker_client.wire import Wire


class Noting(HTTPAdapter):
    """Sends as usual, and keeps what was sent and how long an answer may take."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str | None, Any]] = []

    def send(self, request: Any, *args: Any, **more: Any) -> Any:
        self.sent.append((request.method, more["timeout"]))
        return super().send(request, *args, **more)


@pytest.fixture
def silent(monkeypatch):
    """A connection to a service that takes requests and answers none, and what was sent over it."""
    for name in ("TIMEOUT", "SILENCE"):
        monkeypatch.setattr(wire, name, 0.1)
    monkeypatch.setattr(wire, "PATIENCE", {"connect_retries": 1, "connect_retry_delay": 0.01})
    noting = Noting()
    with socket.create_server(("127.0.0.1", 0), backlog=10) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        session = Session(auth=NoAuth(endpoint=address), connect_retries=2)  # were it not said with each question
        session.session.mount("http://", noting)
        yield Wire(Adapter(session, endpoint_override=address)), noting.sent


def streamed(connection: Wire) -> None:
    with connection.stream("/x"):
        pass


def send(method: str):
    return lambda connection: connection.send(method, "/x", {})


@pytest.mark.parametrize(
    ("ask", "method", "count"),
    [
        (lambda connection: connection.get("/x", patient=True), "GET", 2),
        (streamed, "GET", 2),
        *((send(method), method, 1) for method in ("POST", "PUT", "PATCH", "DELETE")),
    ],
)
def test_only_requests_that_change_nothing_are_retried(silent, ask, method, count):
    connection, sent = silent

    with pytest.raises(Unreachable, match="takes too long to answer"):
        ask(connection)

    assert sent == [(method, (wire.CONNECT, 0.1))] * count
