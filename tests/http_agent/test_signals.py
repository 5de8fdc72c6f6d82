"""Signals of deployments by their own URLs, and by members of the project."""

from __future__ import annotations

from urllib.parse import urlsplit

from support.agent_protocol import deploy, shown
from support.templates import config, on, template

GOOD = {"deploy_status_code": 0, "deploy_stdout": "out\n"}


def post(stoker, path, said, **headers):
    answer = stoker.request("POST", path, said, headers)
    return answer.status, answer.body


def signal_path(stoker, deployment, query=""):
    return f"/v1/{stoker.project}/software_deployments/{deployment['id']}/signal{query}"


def url_of(agent, deployment):
    """The path of the URL for the result, which only the server's agent gets."""
    (entry,) = (each for each in agent.entries() if each["id"] == deployment["config_id"])
    return {each["name"]: each["value"] for each in entry["inputs"]}["deploy_signal_id"].removeprefix(agent.stoker.url)


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
    assert post(stoker, url_of(agent, made), GOOD) == (200, {"status": "COMPLETE"})
    assert shown(stoker, made)["output_values"]["deploy_stdout"] == "out\n"


def test_a_signal_to_a_stacks_deployment_goes_to_its_resource(stoker, agent):
    run = on(agent.id, signal_transport="STOKER_SIGNAL")
    stack = stoker.create_stack(f"shop-{agent.id[:8]}", template({"config": config(), "run": run}))
    (entry,) = agent.entries()
    answer = post(stoker, signal_path(stoker, {"id": entry["deployment_id"]}), GOOD, **{"X-Auth-Token": stoker.token})
    assert answer == (200, {"status": "COMPLETE"})
    stoker.await_stack(stack)
    events = stoker.heat("GET", f"{stack}/events").body["events"]
    assert any(each["resource_status"] == "SIGNAL_COMPLETE" for each in events)
