"""Policies through the whole program: who is refused and how, another project's run on a real agent, and the log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.accounts import create_account, create_project
from support.agents import OwnAgent, enrolled_agent
from support.server import Answer, Served
from support.templates import define

Ask = Callable[..., Answer]


def stranger(stoker: Served, name: str) -> tuple[str, Ask]:
    """Another project's id, and what its member asks."""
    account = create_account(stoker, "member", project=create_project(stoker, name), name=name)
    return account.project, account.heat


@pytest.fixture
def agent(stoker, tmp_path) -> Iterator[OwnAgent]:
    with enrolled_agent(tmp_path, stoker, "web1") as running:
        yield running


def source(ask: Ask, text: str, group: str = "script") -> str:
    body = {"name": "c", "group": group, "config": text}
    return str(ask("POST", "/software_configs", body).body["software_config"]["id"])


def deploy(ask: Ask, server: str, text: str, group: str = "script") -> Answer:
    said = {"config_id": source(ask, text, group), "server_id": server, "signal_transport": "STOKER_SIGNAL"}
    return ask("POST", "/software_deployments", said)


def status(ask: Ask, made: Answer) -> str:
    id = made.body["software_deployment"]["id"]
    return str(ask("GET", f"/software_deployments/{id}").body["software_deployment"]["status"])


def test_a_policy_admits_one_other_project(stoker, agent):
    let, theirs = stranger(stoker, "let-in")
    _, forger = stranger(stoker, "forger")
    server = stoker.heat("GET", "/servers/web1").body["server"]["id"]

    before = deploy(theirs, server, "echo before >>$WORK/runs")
    assert before.status == 200, "as with Heat: it is taken and never runs"
    unknown = deploy(theirs, "no-such-server", "true")
    reasons = {
        each["status_reason"].replace(each["server_id"], "ID")
        for each in (answer.body["software_deployment"] for answer in (before, unknown))
    }
    assert reasons == {"Waiting for an agent: this project has no server with the id ID"}
    mistaken = stoker.heat("PATCH", "/servers/web1", {"policy": {"allow": [{"project": "let-on"}]}})
    assert (mistaken.status, "let-on" in mistaken.body["error"]["message"]) == (400, True)
    policy = {"allow": [{"project": "let-in"}], "groups": ["script"]}
    changed = stoker.heat("PATCH", "/servers/web1", {"policy": policy})
    assert changed.body["server"]["policy"]["allow"] == [{"project": let}]
    made = deploy(theirs, server, "echo let in >>$WORK/runs")
    assert made.status == 200
    stoker.until(lambda: status(theirs, made) == "COMPLETE")
    assert agent.lines() == ["let in"]
    assert status(theirs, before) == "IN_PROGRESS"

    said = deploy(forger, server, "echo forged >>$WORK/runs")
    assert said.status == 403
    assert said.body["error"]["type"] == "DeploymentRefused"
    assert server in said.body["error"]["message"]
    assert "web1" not in said.body["error"]["message"]
    theirs_id, known = made.body["software_deployment"]["id"], f"/software_deployments?server_id={server}"
    for path in (f"/software_deployments/{theirs_id}", f"/software_deployments/{theirs_id}/logs", "/servers/web1"):
        assert forger("GET", path).status == 404
    assert forger("GET", known).body == {"software_deployments": []}
    assert forger("GET", f"/software_deployments/metadata/{server}").body == {"metadata": []}
    assert forger("PATCH", f"/servers/{server}", {"policy": "PROJECT"}).status == 404
    assert theirs("PATCH", f"/servers/{server}", {"policy": "PROJECT"}).status == 404
    assert theirs("GET", f"/servers/{server}").status == 404
    assert forger("GET", f"/audit?server={server}").body == {"audit": []}
    assert agent.lines() == ["let in"]

    hanging = deploy(theirs, server, "sleep 1000")
    assert hanging.status == 200
    refused = deploy(theirs, server, "echo 1", "ansible")
    assert refused.status == 403
    log = stoker.heat("GET", "/audit?server=web1").body["audit"]
    assert [(each["outcome"], each["action"], each["actor"]) for each in log] == [
        ("REFUSED", "run CREATE", "let-in"),
        ("ALLOWED", "run CREATE", "let-in"),
        ("REFUSED", "run CREATE", "forger"),
        ("ALLOWED", "run CREATE", "let-in"),
        ("ALLOWED", "change policy", "admin"),
        ("ALLOWED", "enroll", "the agent of web1"),
        ("ALLOWED", "create enrollment", "admin"),
    ]
    assert log[0]["reason"] == refused.body["error"]["message"]
    assert stoker.heat("GET", f"/audit?limit=1&marker={log[1]['id']}").body["audit"] == [log[2]]
    assert stoker.heat("DELETE", "/servers/web1").status == 204
    stoker.until(lambda: status(theirs, hanging) == "FAILED")
    assert "decision=REFUSED" in stoker.output or '"REFUSED"' in stoker.output


def test_labels_and_policies_are_set_shown_and_validated(stoker):
    server = stoker.heat("POST", "/servers", {"name": "web1"}).body["server"]
    assert (server["labels"], server["policy_source"]) == ({}, "site")
    assert server["policy"]["allow"] == "PROJECT"
    assert server["window"] == {"open": True, "changes_at": None}

    def change(said: Any) -> Answer:
        return stoker.heat("PATCH", "/servers/web1", said)

    assert change({"labels": {"tier": "web", "zone": "a"}}).body["server"]["labels"] == {"tier": "web", "zone": "a"}
    assert change({"labels": {"zone": None}}).body["server"]["labels"] == {"tier": "web"}
    assert [each["name"] for each in stoker.heat("GET", "/servers?labels=tier=web").body["servers"]] == ["web1"]
    assert stoker.heat("GET", "/servers?labels=tier=db").body["servers"] == []
    assert stoker.heat("GET", "/servers?labels=tier").status == 400
    assert change({"policy": "STACK"}).body["server"]["policy_source"] == "server"
    for wrong in ({"labels": {"a": 1}}, {"labels": [1]}, {"policy": "ALL"}, {"policy": {"groups": 1}}, []):
        assert change(wrong).status == 400
    assert change({}).body["server"]["labels"] == {"tier": "web"}
    assert change({"policy": None}).body["server"]["policy_source"] == "site"
    assert stoker.heat("PATCH", "/servers/none", {}).status == 404
    log = stoker.heat("GET", "/audit").body["audit"]
    assert [each["action"] for each in log] == [
        *(["change policy"] * 2 + ["change labels"] * 2),
        *("create enrollment", "log in"),
    ]
    assert log[3]["reason"] == '{} → {"tier":"web","zone":"a"}'


def test_a_deployment_is_authorized_again_for_every_run(stoker):
    server = stoker.heat("POST", "/servers", {"name": "web1"}).body["server"]["id"]
    given = {"config_id": source(stoker.heat, "echo"), "server_id": server, "action": "CREATE"}
    made = stoker.heat("POST", "/software_deployments", {**given, "status": "IN_PROGRESS"})
    path = f"/software_deployments/{made.body['software_deployment']['id']}"
    stoker.heat("PATCH", "/servers/web1", {"policy": {"groups": ["puppet"]}})
    assert stoker.heat("POST", "/software_deployments", given).status == 403
    assert stoker.heat("PUT", path, {"status": "COMPLETE"}).status == 200, "a report is no run"
    assert stoker.heat("PUT", path, {"status": "IN_PROGRESS"}).status == 403
    assert stoker.heat("PUT", path, {"config_id": source(stoker.heat, "other")}).status == 403
    assert stoker.heat("PUT", path, {"config_id": source(stoker.heat, "other", "puppet")}).status == 200


def test_a_guest_is_not_shown_the_state_of_the_server_that_it_waits_for(stoker):
    _, guest = stranger(stoker, "guest")
    id = stoker.heat("POST", "/servers", {"name": "absent"}).body["server"]["id"]
    stoker.heat("PATCH", "/servers/absent", {"policy": {"allow": [{"project": "guest"}]}})
    properties = {"config": source(guest, "true"), "server": id}
    run = define("OS::Heat::SoftwareDeployment", **properties)
    template = {"heat_template_version": "2018-08-31", "resources": {"run": run}}
    made = guest("POST", "/stacks", {"stack_name": "waits", "template": template})

    shown = guest("GET", f"/stacks/waits/{made.body['stack']['id']}/resources/run").body["resource"]

    assert shown["deployment"]["status_reason"] == "Waiting for the agent"
