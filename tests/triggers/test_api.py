"""Triggers, schedules, runs and signals of deployments as clients of a real server see them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from support.agent_protocol import deploy, shown, spoken_agent
from support.events import event_stream
from support.server import Served, served_on
from support.templates import define, on, template

pytestmark = pytest.mark.slow

TEMPLATE = template(
    {
        "app": define(
            "OS::Heat::SoftwareComponent",
            inputs=[{"name": "target", "default": "disk"}],
            configs=[
                {"actions": ["CREATE"], "config": "true", "tool": "script"},
                {"actions": ["BACKUP"], "config": "true", "tool": "script"},
            ],
        ),
        "on": on({"get_param": "server"}, "app", signal_transport="STOKER_SIGNAL"),
    },
    parameters={"server": {"type": "string"}},
)
GOOD = {"deploy_status_code": 0, "deploy_stdout": "out\n"}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def stoker(request, tmp_path_factory) -> Iterator[Served]:
    with served_on(request, tmp_path_factory.mktemp("triggers")) as running:
        yield running


@pytest.fixture
def agent(stoker):
    return spoken_agent(stoker)


@pytest.fixture
def stack(stoker, agent):
    """Complete, with a component on the agent's server."""
    name = f"shop-{agent.id[:8]}"
    made = stoker.heat(
        "POST", "/stacks", {"stack_name": name, "template": TEMPLATE, "parameters": {"server": agent.id}}
    ).body["stack"]
    report(agent)
    path = f"/stacks/{name}/{made['id']}"
    stoker.until(lambda: stoker.heat("GET", path).body["stack"]["stack_status"] == "CREATE_COMPLETE")
    return path


def report(agent, **said):
    """The agent runs the one thing that it has to run."""
    (entry,) = agent.entries()
    assert agent.call("POST", f"/runs/{entry['id']}/signal", {**GOOD, **said}).status == 200
    return entry


def test_events_of_a_trigger_are_streamed(stoker, agent):
    other = spoken_agent(stoker)
    config = deploy(stoker, agent.id)  # leaves a config behind
    report(agent)
    body = {"deployment_id": config["id"], "servers": [agent.id, other.id], "max_concurrent": 1}
    made = stoker.heat("POST", "/software_triggers", body).body["software_trigger"]
    with event_stream(stoker, f"/events?subject=trigger:{made['id']}") as events:
        first = [next(events) for _ in range(3)]
        assert [each.name for each in first] == ["target", "target", "trigger"]
        assert [each.data["status"] for each in first[:2]] == ["IN_PROGRESS", "QUEUED"]
        (entry,) = agent.entries()
        agent.log(entry["id"], 0, b"half\n")
        found = next_of(events, "log")
        assert (found.data["server_name"], found.data["data"]) == (agent.name, "half\n")
        agent.call("POST", f"/runs/{entry['id']}/progress", {"state": "RUNNING", "percent": 50, "message": "so far"})
        while (found := next_of(events, "target")).data["run"]["percent"] != 50:
            pass
        assert (found.data["run"]["state"], found.data["run"]["message"]) == ("RUNNING", "so far")
        report(agent)
        while next_of(events, "target").data["server_id"] != other.id:
            pass
        report(other, deploy_status_code=1)
        *_, last = events
    assert (last.name, last.data["status"], last.data["failed"]) == ("end", "FAILED", 1)
    with event_stream(stoker, f"/events?subject=trigger:{made['id']}") as events:
        seen = [each for each in events if each.name == "log"]
    with event_stream(stoker, f"/events?subject=trigger:{made['id']}", last=seen[0].id) as events:
        assert [each.id for each in events if each.name == "log"] == [each.id for each in seen[1:]]


def next_of(events, name):
    return next(each for each in events if each.name == name)


def post(stoker, path, said, **headers):
    answer = stoker.request("POST", path, said, headers)
    return answer.status, answer.body


def signal_path(stoker, deployment, query=""):
    return f"/v1/{stoker.project}/software_deployments/{deployment['id']}/signal{query}"


def url_of(agent, deployment):
    """The path of the URL for the result, which only the server's agent gets."""
    (entry,) = (each for each in agent.entries() if each["id"] == deployment["config_id"])
    return {each["name"]: each["value"] for each in entry["inputs"]}["deploy_signal_id"].removeprefix(agent.stoker.url)


@pytest.mark.parametrize("who", ["member", "agent", "url", "token"])
def test_these_actors_may_signal_a_deployment(stoker, agent, who):
    made = deploy(stoker, agent.id, signal_transport="CFN_SIGNAL")
    path = signal_path(stoker, made)
    token = urlsplit(url_of(agent, made)).query.partition("&")[0].removeprefix("token=")
    said = {
        "member": lambda: post(stoker, path, GOOD, **{"X-Auth-Token": stoker.token}),
        "agent": lambda: post(stoker, path, GOOD, Authorization=f"Bearer {agent.key}"),
        "url": lambda: post(stoker, url_of(agent, made), GOOD),
        "token": lambda: post(stoker, path, GOOD, **{"X-Auth-Token": token}),
    }[who]()
    assert said == (200, {"status": "COMPLETE"})
    assert shown(stoker, made)["output_values"]["deploy_stdout"] == "out\n"


def test_the_url_of_one_deployment_signals_no_other_one(stoker, agent):
    """``test_routes_by_actor`` tries all other actors on this route."""
    made, other = (deploy(stoker, agent.id, signal_transport="CFN_SIGNAL") for _ in range(2))
    path = signal_path(stoker, made)
    strange = signal_path(stoker, made, "?" + urlsplit(url_of(agent, other)).query)
    assert post(stoker, strange, GOOD)[0] == 404
    assert post(stoker, signal_path(stoker, made, "?token=signal." + "0" * 36 + "." + "0" * 64), GOOD)[0] == 401
    elsewhere = url_of(agent, made).replace(stoker.project, "another")
    assert post(stoker, elsewhere, GOOD)[0] == 404
    assert post(stoker, path, [], **{"X-Auth-Token": stoker.token})[0] == 400
    assert shown(stoker, made)["status"] == "IN_PROGRESS"


def test_a_signal_to_a_stacks_deployment_goes_to_its_resource(stoker, agent, stack):
    template = json.loads(json.dumps(TEMPLATE))
    template["resources"]["on"]["properties"]["input_values"] = {"target": "new"}
    template["resources"]["app"]["properties"]["configs"][0]["actions"] = ["CREATE", "UPDATE"]
    stoker.heat("PUT", stack, {"template": template, "parameters": {"server": agent.id}})
    (entry,) = agent.entries()
    answer = post(stoker, signal_path(stoker, {"id": entry["deployment_id"]}), GOOD, **{"X-Auth-Token": stoker.token})
    assert answer == (200, {"status": "COMPLETE"})
    stoker.until(lambda: "COMPLETE" in stoker.heat("GET", stack).body["stack"]["stack_status"])
    events = stoker.heat("GET", f"{stack}/events").body["events"]
    assert any(each["resource_status"] == "SIGNAL_COMPLETE" for each in events)
