"""What a run says, followed over server-sent events."""

from __future__ import annotations

import pytest

from support.agent_protocol import deploy
from support.events import event_stream


def test_a_run_is_followed_from_its_beginning_to_its_end(agent, stoker):
    deployment = deploy(stoker, agent.id)
    run = deployment["config_id"]
    agent.log(run, 0, b"before\n")
    with event_stream(stoker, f"/events?subject=deployment:{deployment['id']}") as events:
        first = next(events)
        assert (first.name, first.data["data"]) == ("log", "before\n")
        assert first.id == f"d{deployment['id'][:12]}_{first.data['seq']}"
        assert (next(events).name, next(events).data["status"]) == ("progress", "IN_PROGRESS")
        agent.log(run, 7, b"while\n")
        found = next(events)
        assert (found.name, found.data["data"], found.data["offset"], found.data["size"]) == ("log", "while\n", 7, 6)
        agent.call("POST", f"/runs/{run}/progress", {"state": "RUNNING", "percent": 42, "message": "half way"})
        said = {}
        while "status" not in said:  # output is a word of the agent's too, and may have come a second later
            each = next(events)
            said[each.name] = each.data
        assert (said["progress"]["percent"], said["progress"]["message"]) == (42, "half way")
        assert said["status"]["status_reason"] == "Running (42 %): half way"
        assert agent.finish(run).status == 200
        names = [(each.name, each.data.get("status")) for each in events]
    assert names[-1] == ("end", "COMPLETE")


def test_a_forced_cancellation_ends_the_stream_of_a_lost_server(agent, stoker):
    deployment = deploy(stoker, agent.id)
    agent.entries()
    path = f"/software_deployments/{deployment['id']}"
    stoker.until(lambda: stoker.heat("GET", f"{path}/runs").body["runs"][0]["channel"] == "STOKER_PUSH")
    with event_stream(stoker, f"/events?subject=deployment:{deployment['id']}") as events:
        assert next(events).data["status"] == "IN_PROGRESS"
        stoker.heat("POST", f"{path}/cancel", {"force": True})
        names = [(each.name, each.data.get("status")) for each in events]
    assert names[-1] == ("end", "FAILED")
    assert agent.entries()[0]["cancel"] is True  # it has not answered


def test_more_chunks_than_one_page_arrive_in_order_also_after_the_last_event(agent, stoker):
    deployment = deploy(stoker, agent.id)
    run = deployment["config_id"]
    for offset in range(450):
        agent.log(run, offset, b"%d" % (offset % 10))
    assert agent.finish(run).status == 200
    path = f"/events?subject=deployment:{deployment['id']}"
    with event_stream(stoker, path) as events:
        seen = [each for each in events if each.name == "log"]
    assert [each.data["offset"] for each in seen] == list(range(450))
    with event_stream(stoker, path, last=seen[447].id) as events:
        assert [each.data["data"] for each in events if each.name == "log"] == ["8", "9"]


def test_a_stream_of_an_unknown_run_is_404(stoker):
    path = f"/v1/{stoker.project}/events?subject=deployment:11111111-1111-1111-1111-111111111111"
    headers = {"X-Auth-Token": stoker.token, "Accept": "text/event-stream"}
    assert stoker.request("GET", path, headers=headers).status == 404
    assert stoker.request("GET", path, headers={"Accept": "text/event-stream"}).status == 401


def test_a_deleted_deployment_ends_its_stream_without_an_end_event(agent, stoker):
    deployment = deploy(stoker, agent.id)
    with event_stream(stoker, f"/events?subject=deployment:{deployment['id']}") as events:
        assert next(events).name == "status"
        stoker.heat("DELETE", f"/software_deployments/{deployment['id']}")
        assert list(events) == []


@pytest.mark.parametrize("offset", [2**31, 3 * 2**30, 2**62])
def test_offsets_may_exceed_32_bits(agent, stoker, offset):
    deployment = deploy(stoker, agent.id)
    run = deployment["config_id"]
    assert agent.log(run, offset, b"far\n", more="&gap=1").body == {"offset": offset + 4}
    if offset < 2**62:
        assert agent.log(run, offset + 4, b"on\n").body == {"offset": offset + 7}
    path = f"/software_deployments/{deployment['id']}/logs"
    assert stoker.heat("GET", path).body["logs"][0]["offset"] == offset
    assert stoker.heat("GET", f"{path}?after={2**63 - 1}").body["next"] == 2**63 - 1


def test_offsets_and_ids_beyond_64_bits_are_refused(agent, stoker):
    deployment = deploy(stoker, agent.id)
    answer = agent.log(deployment["config_id"], 2**62 + 1, b"x", more="&gap=1")
    assert (answer.status, b"offset must be at most" in answer.raw) == (400, True)
    for path in (f"/software_deployments/{deployment['id']}/logs?after={2**63}", f"/audit?marker={2**63}"):
        answer = stoker.heat("GET", path)
        assert (answer.status, b"must be at most 9223372036854775807" in answer.raw) == (400, True)
    assert stoker.heat("GET", f"/audit?marker={2**63 - 1}").status == 200
