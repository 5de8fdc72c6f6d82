"""Policies through the whole program: who is refused and how, another project's run on a real agent, and the log."""

from __future__ import annotations

from support.accounts import Account, create_account, create_project
from support.agent_protocol import shown
from support.server import Answer, HeatClient, Served
from support.templates import define, template


def stranger(stoker: Served, name: str) -> Account:
    """A member of another project of this name."""
    return create_account(stoker, "member", project=create_project(stoker, name), name=name)


def deploy(client: HeatClient, server: str, text: str, group: str = "script") -> Answer:
    config_id = client.create_config(text, group=group)
    body = {"config_id": config_id, "server_id": server, "signal_transport": "STOKER_SIGNAL"}
    return client.heat("POST", "/software_deployments", body)


def status(client: HeatClient, made: Answer) -> str:
    return str(shown(client, made.body["software_deployment"])["status"])


def test_a_policy_admits_one_other_project(stoker, agent):
    theirs, forger = stranger(stoker, "let-in"), stranger(stoker, "forger")
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
    assert changed.body["server"]["policy"]["allow"] == [{"project": theirs.project}]
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
        assert forger.heat("GET", path).status == 404
    assert forger.heat("GET", known).body == {"software_deployments": []}
    assert forger.heat("GET", f"/software_deployments/metadata/{server}").body == {"metadata": []}
    assert forger.heat("PATCH", f"/servers/{server}", {"policy": "PROJECT"}).status == 404
    assert theirs.heat("PATCH", f"/servers/{server}", {"policy": "PROJECT"}).status == 404
    assert theirs.heat("GET", f"/servers/{server}").status == 404
    assert forger.heat("GET", f"/audit?server={server}").body == {"audit": []}
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


def test_a_deployment_is_authorized_again_for_every_run(stoker):
    server = stoker.heat("POST", "/servers", {"name": "web1"}).body["server"]["id"]
    given = {"config_id": stoker.create_config("echo"), "server_id": server, "action": "CREATE"}
    made = stoker.heat("POST", "/software_deployments", {**given, "status": "IN_PROGRESS"})
    path = f"/software_deployments/{made.body['software_deployment']['id']}"
    stoker.heat("PATCH", "/servers/web1", {"policy": {"groups": ["puppet"]}})
    assert stoker.heat("POST", "/software_deployments", given).status == 403
    assert stoker.heat("PUT", path, {"status": "COMPLETE"}).status == 200, "a report is no run"
    assert stoker.heat("PUT", path, {"status": "IN_PROGRESS"}).status == 403
    assert stoker.heat("PUT", path, {"config_id": stoker.create_config("other")}).status == 403
    assert stoker.heat("PUT", path, {"config_id": stoker.create_config("other", group="puppet")}).status == 200


def test_a_guest_is_not_shown_the_state_of_the_server_that_it_waits_for(stoker):
    guest = stranger(stoker, "guest")
    id = stoker.heat("POST", "/servers", {"name": "absent"}).body["server"]["id"]
    stoker.heat("PATCH", "/servers/absent", {"policy": {"allow": [{"project": "guest"}]}})
    run = define("OS::Heat::SoftwareDeployment", config=guest.create_config("true"), server=id)
    path = guest.create_stack("waits", template({"run": run}))
    resource = guest.heat("GET", f"{path}/resources/run").body["resource"]
    assert resource["deployment"]["status_reason"] == "Waiting for the agent"
