"""Attacks on a relay by everybody who reaches its port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.agent_protocol import SpokenAgent, spoken_agent
from support.faulty_line import faulty_line
from support.raw import connect, is_closed, read_answer
from support.server import Answer
from support.site_relay import METRICS_TOKEN, SiteRelay, site_relay


@pytest.fixture(scope="module")
def line(stoker):
    with faulty_line(stoker.port) as cuttable:
        yield cuttable


@pytest.fixture(scope="module")
def site(tmp_path_factory, stoker, line) -> Iterator[SiteRelay]:
    with site_relay(tmp_path_factory.mktemp("site"), stoker, center=line.url) as running:
        yield running


@pytest.fixture
def agent(stoker, site) -> SpokenAgent:
    known = spoken_agent(stoker)
    return SpokenAgent(site, known.id, known.name, known.key)


def send(site: SiteRelay, head: str, body: bytes = b"", source: str = "127.0.0.1") -> Answer:
    """Send a request as it is, and return the answer."""
    with connect(site, source) as connection:
        connection.sendall(f"{head}\r\nHost: x\r\n\r\n".encode() + body)
        return read_answer(connection)


@pytest.mark.parametrize(
    "path",
    [
        "/agent/v1/../../identity/v3/auth/tokens",
        "/agent/v1/../../openapi.json",
        "/agent/v1/../../healthz",
        "/agent/v1/%2e%2e/%2e%2e/openapi.json",
        "/agent/v1/..%2f..%2fopenapi.json",
        "/agent/v1/runs/../signal",
        "/agent/v1/runs/./signal",
        "/agent/v1/runs/..%2f..%2f..%2fhealthz/signal",
        "/agent/v1/runs/a%00b/signal",
        "/agent/v1/runs//signal",
        "/agent/v1/hooks/..",
        "/agent/v1/hooks/%2e%2e",
        "/agent/v1//install",
        "//agent/v1/install",
        "/agent/v1/install/",
        "/agent/v1/install;x",
        "http://x/agent/v1/../../healthz",
        "/",
        "/v1",
        "/identity/v3",
        "/openapi.json",
        "/relay/v1/install",
        "/agent/v1/none",
        "*",
    ],
)
def test_only_the_routes_of_agents_are_passed_on(site, agent, path):
    for verb in ("GET", "POST", "DELETE"):
        answer = send(site, f"{verb} {path} HTTP/1.1\r\nAuthorization: Bearer {agent.key}\r\nContent-Length: 0")
        assert answer.status in (400, 404), verb  # 400: "*" is no path


def test_a_key_is_checked_before_a_body_is_read_and_bodies_are_limited(site, agent):
    facts = f"PUT /agent/v1/facts HTTP/1.1\r\nContent-Length: {2 * 1024 * 1024}\r\nAuthorization: Bearer "
    for key in ("invented", f"{agent.id}.invented", "x" * 256, "\xe9"):
        assert send(site, facts + key, b"{").status == 401
    too_long = send(site, facts + agent.key, b"x" * 64 * 1024)
    assert (too_long.status, too_long.body["error"]["type"]) == (400, "RequestLimitExceeded")
    assert agent.call("PUT", "/facts", {"cpus": 1}).status == 204


def test_half_a_request_is_ended(site):
    with connect(site) as connection:
        connection.sendall(b"GET /agent/v1/docu")
        assert read_answer(connection).status == 408
        assert is_closed(connection)


def test_invented_keys_are_refused_from_the_cache_and_then_not_checked(site, line, agent):
    def poll(key: str, source: str) -> Answer:
        return send(site, f"GET /agent/v1/document?wait=30 HTTP/1.1\r\nAuthorization: Bearer {key}", source=source)

    before = site.health()["agents"]
    tag = agent.document().headers["ETag"]
    assert agent.document(etag=tag).status == 304
    assert [poll(f"{number}.key", "127.0.0.9").status for number in range(60)] == [401] * 60
    refused = poll("60.key", "127.0.0.9")
    assert refused.status == 429
    assert 0 < int(refused.headers["retry-after"]) <= 61
    assert poll("60.key", "127.0.0.8").status == 401  # other addresses are not affected
    assert poll(agent.key, "127.0.0.9").status == 200  # nor are keys that are in use
    assert site.health()["agents"] <= before + 1
    line.go()
    assert poll("60.key", "127.0.0.8").status == 401
    assert poll("61.key", "127.0.0.8").status == 503
    line.come()


def test_metrics_need_the_token_also_behind_a_proxy_on_the_same_machine(site):
    path = "GET /metrics HTTP/1.1\r\n"
    for header in ("X-Forwarded-For: 192.0.2.1", "Authorization: Bearer wrong", f"Authorization: {METRICS_TOKEN}"):
        assert send(site, path + header).status == 401
    assert send(site, f"{path}Authorization: Bearer {METRICS_TOKEN}").status == 200
