"""The relay API of the central Stoker: one request waits for the documents of many agents."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from stoker.deployments.documents import Document
from stoker.model.server import Machine
from stoker.servers import enrollment
from stoker.servers.redemption import Redemption, redeem_token
from support.agent_protocol import deploy, spoken_agent
from support.in_process import Inside
from support.server import Answer, Served


@pytest.fixture
def relay(stoker):
    """The relay's headers."""
    answer = stoker.heat("POST", "/relays", {"name": f"r{uuid4().hex[:8]}", "url": "http://relay.example:8005"})
    headers = {"Authorization": f"Bearer {answer.body['relay']['key']}", "User-Agent": "stoker-relay/1.2.3"}
    yield headers
    poll(stoker, headers, [])  # the session keeps no agents for the next test


def poll(
    stoker: Served, relay: dict[str, str], agents: list[Any], wait: int = 0, number: int | None = None, **more: Any
) -> Answer:
    """Send the request ``number`` of a session; without a number, its first one."""
    numbered = [{"number": position, **agent} for position, agent in enumerate(agents)]
    body = {"session": "s", "number": number or 0, "full": number is None, "agents": numbered, **more}
    return stoker.request("POST", f"/relay/v1/polls?wait={wait}", body, relay)


def as_polls(agents: list[Any], tags: dict[str, str]) -> list[dict[str, Any]]:
    said = "0.1.0; hooks=script; modes=preview"
    return [{"key": agent.key, "etag": tags.get(agent.id), "agent": said} for agent in agents]


def tags_of(answer: Answer, agents: list[Any]) -> dict[str, str]:
    return {agents[each["number"]].id: each["etag"] for each in answer.body["agents"]}


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
    assert (changed["number"], changed["status"]) == (1, 200)
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
    answers = {each["number"]: each for each in poll(stoker, relay, agents).body["agents"]}
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
        assert later.result(60).body == {"agents": [{"number": 0, "status": 304, "retry_after": 10}]}


def test_later_requests_of_a_session_have_changes_only(stoker, relay):
    agents = [spoken_agent(stoker) for _ in range(3)]
    first = poll(stoker, relay, as_polls(agents[:2], {}))
    assert [each["number"] for each in first.body["agents"]] == [0, 1]
    # The session assumes that the agents have their documents.
    assert poll(stoker, relay, [], number=1).body == {"agents": []}
    deploy(stoker, agents[0].id)
    deploy(stoker, agents[1].id)
    deploy(stoker, agents[2].id)
    [joined] = [{**each, "number": 7} for each in as_polls(agents[2:], {})]
    answer = poll(stoker, relay, [joined], number=2, removed=[1])
    assert sorted(each["number"] for each in answer.body["agents"]) == [0, 7]
    # An agent that polls with its earlier ETag did not receive the document.
    [repeated] = as_polls(agents[:1], tags_of(first, agents))
    answer = poll(stoker, relay, [repeated], number=3)
    assert [each["number"] for each in answer.body["agents"]] == [0]
    # The key of a deleted server ends its place in the session.
    assert stoker.heat("DELETE", f"/servers/{agents[0].id}").status == 204
    answer = poll(stoker, relay, [], number=4, wait=30)
    assert [(each["number"], each["status"]) for each in answer.body["agents"]] == [(0, 401)]
    stoker.until(lambda: held(stoker, 1))


def test_a_session_with_a_gap_is_unknown_until_it_begins_again(stoker, relay):
    agent = spoken_agent(stoker)
    unknown = {"agents": [], "unknown": True}
    answer = poll(stoker, relay, as_polls([agent], {}), number=5)
    assert answer.body == unknown
    assert answer.headers["Connection"] == "close"  # the relay's next one may lead to the right process
    tags = tags_of(poll(stoker, relay, as_polls([agent], {})), [agent])
    assert poll(stoker, relay, [], number=2).body == unknown  # the request 1 is missing
    assert poll(stoker, relay, as_polls([agent], tags)).body == {"agents": []}
    deploy(stoker, agent.id)
    assert [each["number"] for each in poll(stoker, relay, [], number=1).body["agents"]] == [0]
    assert poll(stoker, relay, [], number=1).body == unknown  # its answer may be lost
    assert [each["number"] for each in poll(stoker, relay, as_polls([agent], tags)).body["agents"]] == [0]


def test_results_of_many_agents_are_answered_each(stoker, relay):
    agents = [spoken_agent(stoker) for _ in range(2)]
    made = [deploy(stoker, agent.id) for agent in agents]
    runs = [agent.document().body["deployments"][0]["id"] for agent in agents]
    values = {"deploy_status_code": 0}
    results = [
        *({"key": agent.key, "config_id": run, "values": values} for agent, run in zip(agents, runs, strict=True)),
        {"key": agents[0].key, "config_id": runs[1], "values": values},
        {"key": f"{agents[0].key}x", "config_id": runs[0], "values": values},
    ]
    answer = stoker.request("POST", "/relay/v1/results", {"results": results}, relay)
    assert [each["status"] for each in answer.body["results"]] == [200, 200, 404, 401]
    assert answer.body["results"][0]["body"] == {"status": "COMPLETE"}
    for each in made:
        shown = stoker.heat("GET", f"/software_deployments/{each['id']}").body["software_deployment"]
        assert shown["status"] == "COMPLETE"


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


def test_a_machine_that_is_replaced_while_its_document_is_read_gets_none(tmp_path, store, monkeypatch):
    program = Inside(tmp_path, store)
    app, client, root = program.services, program.client, f"/v1/{program.project}"

    def join(instance: str, **more: Any) -> Redemption:
        token = store.write(lambda tx: enrollment.enroll(tx, program.project, "web", **more))[2]
        return store.write(lambda tx: redeem_token(tx, app.servers.keys, token, Machine(instance=instance)))

    first = join("a machine")
    made = client.post(
        f"{root}/relays", json={"name": "r", "url": "http://relay.example:8005"}, headers=program.headers
    )
    load = app.documents.load_agents

    def load_late(wanted: Sequence[tuple[str, bool]]) -> list[Document]:
        join("another machine", again=True)
        return load(wanted)

    monkeypatch.setattr(app.documents, "load_agents", load_late)
    shared = {"session": "s", "number": 0, "full": True, "agents": [{"number": 7, "key": first.key}]}
    headers = {"Authorization": f"Bearer {made.json()['relay']['key']}"}
    [answer] = client.post("/relay/v1/polls", json=shared, headers=headers).json()["agents"]
    assert (answer["number"], answer["status"]) == (7, 401)
    assert "document" not in answer
    program.close()
