"""The relay API of the central Stoker: one request waits for the documents of many agents."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from support.agent_protocol import deploy, spoken_agent
from support.server import Answer, Served


@pytest.fixture
def relay(stoker):
    """The relay's headers."""
    answer = stoker.heat("POST", "/relays", {"name": f"r{uuid4().hex[:8]}", "url": "http://relay.example:8005"})
    return {"Authorization": f"Bearer {answer.body['relay']['key']}", "User-Agent": "stoker-relay/1.2.3"}


def poll(stoker: Served, relay: dict[str, str], agents: list[Any], wait: int = 0, batch: str = "b") -> Answer:
    body = {"batch": batch, "agents": agents}
    return stoker.request("POST", f"/relay/v1/polls?wait={wait}", body, relay)


def as_polls(agents: list[Any], tags: dict[str, str]) -> list[dict[str, Any]]:
    said = "0.1.0; hooks=script; modes=preview"
    return [{"key": agent.key, "etag": tags.get(agent.id), "agent": said} for agent in agents]


def tags_of(answer: Answer, agents: list[Any]) -> dict[str, str]:
    return {agents[each["index"]].id: each["etag"] for each in answer.body["agents"]}


def held(stoker: Served, number: int) -> bool:
    """Whether the server holds so many polls, of agents and of batches."""
    metrics = stoker.request("GET", "/metrics", headers={"X-Auth-Token": stoker.token}).raw.decode()
    values = [line.split()[-1] for line in metrics.splitlines() if line.startswith("stoker_held_polls")]
    return [float(value) for value in values] == [number]


def start(executor: ThreadPoolExecutor, *words: Any) -> Future[Answer]:
    return executor.submit(poll, *words)


def test_a_change_answers_the_request_with_the_changed_documents_only(stoker, relay):
    agents = [spoken_agent(stoker) for _ in range(3)]
    first = poll(stoker, relay, as_polls(agents, {}))
    assert [each["document"]["server_id"] for each in first.body["agents"]] == [agent.id for agent in agents]
    tags = tags_of(first, agents)
    assert poll(stoker, relay, as_polls(agents, tags)).body == {"agents": []}
    with ThreadPoolExecutor(1) as executor:
        waiting = start(executor, stoker, relay, as_polls(agents, tags), 30)
        stoker.until(lambda: held(stoker, 3))
        made = deploy(stoker, agents[1].id)
        [changed] = waiting.result(60).body["agents"]
    assert (changed["index"], changed["status"]) == (1, 200)
    assert [run["deployment_id"] for run in changed["document"]["deployments"]] == [made["id"]]
    # The agents count as seen, with what they have reported.
    shown = stoker.heat("GET", f"/servers/{agents[2].id}").body["server"]
    assert (shown["status"], shown["agent_version"]) == ("ONLINE", "0.1.0")
    # The next poll's ETag is the receipt.
    tags |= {agents[1].id: changed["etag"]}
    assert poll(stoker, relay, as_polls(agents, tags)).body == {"agents": []}
    history = f"/software_deployments/{made['id']}/runs"
    stoker.until(lambda: stoker.heat("GET", history).body["runs"][0]["delivered_time"] is not None)


def test_refused_keys_do_not_end_the_polls_of_others(stoker, relay):
    agent, deleted = spoken_agent(stoker), spoken_agent(stoker)
    assert stoker.heat("DELETE", f"/servers/{deleted.id}").status == 204
    many = stoker.heat("POST", "/enrollments", {"limit": 1, "approval": True}).body["enrollment"]["token"]
    pending = stoker.request("POST", "/agent/v1/enroll", {"token": many, "instance": "p", "hostname": "p"}).body["key"]
    agents = [{"key": agent.key}, {"key": deleted.key}, {"key": pending}, {"key": f"{agent.key}x"}]
    answers = {each["index"]: each for each in poll(stoker, relay, agents).body["agents"]}
    assert {index: each["status"] for index, each in answers.items()} == {0: 200, 1: 401, 2: 403, 3: 401}
    assert answers[2]["error"]["error"]["type"] == "ApprovalPending"


def test_a_new_request_ends_the_earlier_one_of_its_batch(stoker, relay):
    agents = [spoken_agent(stoker) for _ in range(2)]
    tags = tags_of(poll(stoker, relay, as_polls(agents, {})), agents)
    with ThreadPoolExecutor(2) as executor:
        earlier = start(executor, stoker, relay, as_polls(agents[:1], tags), 30)
        stoker.until(lambda: held(stoker, 1))
        later = start(executor, stoker, relay, as_polls(agents, tags), 30)
        assert earlier.result(60).body == {"agents": []}
        stoker.until(lambda: held(stoker, 2))
        # A direct poll of one agent supersedes its part only.
        agents[0].document(wait=0, etag=tags[agents[0].id])
        assert later.result(60).body == {"agents": [{"index": 0, "status": 304, "retry_after": 10}]}


def test_a_deleted_relay_loses_its_held_request(stoker, relay):
    agent = spoken_agent(stoker)
    tags = tags_of(poll(stoker, relay, as_polls([agent], {})), [agent])
    relay_id = relay["Authorization"].split()[1].partition(".")[0]
    [listed] = [each for each in stoker.heat("GET", "/relays").body["relays"] if each["id"] == relay_id]
    assert (listed["version"], listed["last_seen"] is None) == ("1.2.3", False)
    with ThreadPoolExecutor(1) as executor:
        waiting = start(executor, stoker, relay, as_polls([agent], tags), 30)
        stoker.until(lambda: held(stoker, 1))
        assert stoker.heat("DELETE", f"/relays/{relay_id}").status == 204
        assert waiting.result(60).status == 401
    assert poll(stoker, relay, []).status == 401


def test_a_request_has_at_most_500_agents(stoker, relay):
    answer = poll(stoker, relay, [{"key": f"k{number}"} for number in range(501)])
    assert answer.status == 400
    assert "agents" in answer.body["error"]["message"]
