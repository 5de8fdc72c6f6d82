"""Webhooks reach no inner network, whatever a name means when. ``messaging/test_webhooks`` has those that hang."""

from __future__ import annotations

import socket
import ssl
import time
import uuid
from typing import Any

import pytest

from stoker.messaging.webhook_client import Targets, WebhookClient, WebhookFailed
from stoker.model.errors import Invalid
from support.accounts import Account
from support.backends import CLIENT
from support.certificates import Authority
from support.http_stub import Said, answering
from support.raw import answering_bytes
from support.templates import define, template

INNER = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "017700000001",
    "0.0.0.0",
    "localhost",
    "LOCALHOST.",
    "a.localhost",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[::7f00:1]",
    "[64:ff9b::10.0.0.1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fd00::1]",
    "[fec0::1]",
    "[ff02::1]",
]


def call(account: Account, verb: str, path: str, body: Any = None) -> Any:
    return account.request(verb, f"/messaging/v2/queues/{path}", body, **CLIENT)


@pytest.mark.parametrize("host", INNER)
def test_internal_addresses_are_refused_at_the_subscription(stoker, member, host) -> None:
    answer = call(member, "POST", "inner/subscriptions", {"subscriber": f"http://{host}:9200/_all", "ttl": 3600})
    assert answer.status == 400, answer.raw
    assert "webhook_networks" in answer.body["description"]


def test_internal_addresses_are_refused_in_changes_and_templates(stoker, member) -> None:
    made = call(member, "POST", "change/subscriptions", {"subscriber": "http://8.8.8.8/", "ttl": 3600})
    assert made.status == 201, made.raw
    path = f"change/subscriptions/{made.body['subscription_id']}"
    assert call(member, "PATCH", path, {"subscriber": "http://[::1]/"}).status == 400
    properties = {"queue_name": "change", "subscriber": "http://127.0.0.1:1/"}
    said = template({"it": define("OS::Zaqar::Subscription", **properties)})
    path = member.create_stack(f"s-{uuid.uuid4().hex[:8]}", said)
    assert "webhook_networks" in stoker.await_stack(path, "CREATE_FAILED")["stack_status_reason"]


@pytest.mark.parametrize("host", ["8.8.8.8", "[2606:4700::1111]", "134744072", "[::ffff:8.8.8.8]"])
def test_public_addresses_are_accepted(host) -> None:
    Targets().check_literal(host)


def test_networks_that_a_site_names_are_allowed() -> None:
    allowed = Targets.of("127.0.0.0/8, fd00::/8")
    for host in ("127.0.0.1", "2130706433", "localhost", "[::ffff:127.0.0.1]", "[fd00::1]"):
        allowed.check_literal(host)
    with pytest.raises(Invalid, match="webhook_networks"):
        allowed.check_literal("10.0.0.1")
    with pytest.raises(Invalid, match="CIDR"):
        Targets.of("10.0.0.1/8")


class Names:
    """A DNS server that says something else each time; addresses are not asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self._look_up = socket.getaddrinfo
        monkeypatch.setattr(socket, "getaddrinfo", self._answer)

    def _answer(self, host: str, port: int, *how: Any, **more: Any) -> list[Any]:
        if host.replace(".", "").isdigit():
            return list(self._look_up(host, port, *how, **more))
        self.asked.append(host)
        address = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not address:
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in address.split()]


@pytest.fixture
def client() -> WebhookClient:
    return WebhookClient(Targets(), 5.0, ssl.create_default_context())


def test_names_with_any_internal_address_are_refused(monkeypatch) -> None:
    Names(monkeypatch, "10.0.0.1")
    with pytest.raises(Invalid, match="webhook_networks"):
        Targets().check("inner.example")
    Names(monkeypatch, "8.8.8.8 127.0.0.1")
    with pytest.raises(Invalid, match="webhook_networks"):
        Targets().check("both.example")
    Names(monkeypatch, "")
    Targets().check("unknown.example")  # it may be known when it is called


def test_a_name_that_resolves_differently_later_is_not_called(monkeypatch, client) -> None:
    """DNS rebinding: a public address for whoever checks, an inner one for whoever connects."""
    with answering(lambda _: Said()) as inner:
        port = inner.url.rpartition(":")[2]
        Names(monkeypatch, "8.8.8.8", "127.0.0.1")
        Targets().check("rebinding.example")
        with pytest.raises(WebhookFailed, match="webhook_networks"):
            client.post(f"http://rebinding.example:{port}/", b"{}", {})
        assert inner.asked == []


def test_the_call_connects_to_the_checked_address(monkeypatch, tmp_path) -> None:
    """Host, SNI and the certificate are the name's: one of another name is not taken."""
    made = Authority.of_loopback(tmp_path)
    trusted = ssl.create_default_context(cafile=str(made.file))
    allowed = Targets.of("127.0.0.0/8")
    with answering(lambda _: Said(), made) as there:
        port = there.url.rpartition(":")[2]
        names = Names(monkeypatch, "127.0.0.1")
        client = WebhookClient(allowed, 5.0, trusted)
        assert client.post(f"https://127.0.0.1:{port}/a", b"{}", {}) == 200
        with pytest.raises(WebhookFailed, match="certificate"):
            client.post(f"https://other.example:{port}/b", b"{}", {})
        assert names.asked == ["other.example"]
        assert [each.path for each in there.asked] == ["/a"]
    with answering(lambda _: Said()) as plain:
        port = plain.url.rpartition(":")[2]
        client = WebhookClient(allowed, 5.0, trusted)
        assert client.post(f"http://name.example:{port}/", b"{}", {}) == 200
        assert plain.asked[0].headers["host"] == f"name.example:{port}"


def test_redirects_are_not_followed() -> None:
    with answering(lambda _: Said()) as inner, answering(lambda _: Said(307, headers={"Location": inner.url})) as outer:
        client = WebhookClient(Targets.of("127.0.0.0/8"), 5.0, ssl.create_default_context())
        assert client.post(outer.url, b"{}", {}) == 307
        assert inner.asked == []


def test_users_cannot_set_framing_headers() -> None:
    said = {
        "Host": "inner",
        "content-length": "5",
        "Transfer-Encoding": "chunked",
        "Connection": "X-Mine",
        "Keep-Alive": "9",
        "TE": "trailers",
        "Trailer": "X",
        "Upgrade": "h2c",
        "Proxy-Authorization": "x",
        "Expect": "100-continue",
        "X-Mine": "yes",
    }
    with answering(lambda _: Said()) as there:
        client = WebhookClient(Targets.of("127.0.0.0/8"), 5.0, ssl.create_default_context())
        assert client.post(f"{there.url}/", b'{"a":1}', said) == 200
        (asked,) = there.asked
    assert asked.body == b'{"a":1}'
    assert asked.headers["x-mine"] == "yes"
    assert asked.headers["host"] == there.url.removeprefix("http://")
    assert asked.headers["content-length"] == "7"
    refused = {"transfer-encoding", "te", "trailer", "upgrade", "proxy-authorization", "expect"}
    assert not refused & asked.headers.keys()
    assert asked.headers.get("connection", "") != "X-Mine"


def test_a_call_ends_although_the_head_of_the_answer_continues() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while True:  # until the client closes the connection
            connection.sendall(b"x")
            time.sleep(0.05)

    client = WebhookClient(Targets.of("127.0.0.0/8"), 0.5, ssl.create_default_context())
    with answering_bytes(drip) as port, pytest.raises(WebhookFailed, match=r"took too long|timed out"):
        client.post(f"http://127.0.0.1:{port}/", b"{}", {})
