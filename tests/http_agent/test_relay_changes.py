"""The relay API of Stoker: one stream of changes for all agents of a relay."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import httpx2
import pytest

from support.agent_protocol import SpokenAgent, deploy, spoken_agent, trade

AGENT = "0.1.0; hooks=script; modes=preview"


@pytest.fixture
def relay(stoker):
    """The relay's headers."""
    answer = stoker.heat("POST", "/relays", {"name": f"r{uuid4().hex[:8]}", "url": "http://relay.example:8005"})
    return {"Authorization": f"Bearer {answer.body['relay']['key']}", "User-Agent": "stoker-relay/1.2.3"}


def body(*keys: str) -> dict[str, Any]:
    return {"agents": {AGENT: list(keys)}}


@contextmanager
def stream(stoker, relay, *keys: str) -> Iterator[Iterator[dict[str, Any]]]:
    """Yield the lines of a stream, without the empty ones."""
    url = f"{stoker.url}/relay/v1/changes"
    with httpx2.stream("POST", url, json=body(*keys), headers=relay, timeout=60) as response:
        assert response.status_code == 200, response.read()
        yield (json.loads(line) for line in response.iter_lines() if line)


def revision(agent: SpokenAgent) -> int:
    return int(agent.document().headers["ETag"].strip('"'))


def test_the_stream_begins_with_all_revisions_and_continues_with_changes(stoker, relay):
    agents = [spoken_agent(stoker) for _ in range(3)]
    deploy(stoker, agents[0].id)
    with stream(stoker, relay, *(agent.key for agent in agents)) as lines:
        begun = {agents[0].id: revision(agents[0]), agents[1].id: 0, agents[2].id: 0}
        assert next(lines) == {"revisions": begun, "refused": []}
        # The agents count as seen, with what they have reported to the relay.
        shown = stoker.heat("GET", f"/servers/{agents[2].id}").body["server"]
        assert (shown["status"], shown["agent_version"]) == ("ONLINE", "0.1.0")
        deploy(stoker, agents[1].id)
        assert next(lines) == {"revisions": {agents[1].id: revision(agents[1])}, "refused": []}
    # Another stream misses nothing, whichever process serves it.
    deploy(stoker, agents[1].id)
    with stream(stoker, relay, agents[1].key) as lines:
        assert next(lines)["revisions"] == {agents[1].id: revision(agents[1])}
    [listed] = [one for one in stoker.heat("GET", "/relays").body["relays"] if one["id"] in relay["Authorization"]]
    assert (listed["version"], listed["last_seen"] is None) == ("1.2.3", False)


def test_keys_that_are_not_valid_are_refused_and_so_are_later_revoked_ones(stoker, relay):
    agent, deleted, removed = (spoken_agent(stoker) for _ in range(3))
    assert stoker.heat("DELETE", f"/servers/{deleted.id}").status == 204
    many = stoker.heat("POST", "/enrollments", {"limit": 1, "approval": True}).body["enrollment"]["token"]
    pending = trade(stoker, many, "p").body
    invented = str(uuid4())
    with stream(stoker, relay, agent.key, deleted.key, removed.key, pending["key"], f"{invented}.x") as lines:
        first = next(lines)
        assert first["revisions"] == {agent.id: 0, removed.id: 0}
        assert first["refused"] == sorted((deleted.id, pending["server_id"], invented))
        assert stoker.heat("DELETE", f"/servers/{removed.id}").status == 204
        assert next(lines) == {"revisions": {}, "refused": [removed.id]}
        deploy(stoker, agent.id)
        assert next(lines)["revisions"] == {agent.id: revision(agent)}


def test_a_deleted_relay_loses_its_stream(stoker, relay):
    agent = spoken_agent(stoker)
    with stream(stoker, relay, agent.key) as lines:
        assert next(lines)["revisions"]
        relay_id = relay["Authorization"].split()[1].partition(".")[0]
        assert stoker.heat("DELETE", f"/relays/{relay_id}").status == 204
        assert list(lines) == []
    assert stoker.request("POST", "/relay/v1/changes?wait=0", body(agent.key), relay).status == 401


def test_a_stream_has_at_most_10000_agents(stoker, relay):
    agents = {AGENT: [f"{number}.key" for number in range(5001)], "": [f"x{number}.key" for number in range(5000)]}
    answer = stoker.request("POST", "/relay/v1/changes?wait=0", {"agents": agents}, relay)
    assert answer.status == 400
    assert "at most 10000 agents" in answer.body["error"]["message"]
