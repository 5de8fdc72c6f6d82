"""
Requests that need earlier ones answer as /openapi.json says, those that the command line does not send: the tests of
``tests/client`` compare each answer to it, and ``test_any_request`` sends each route by itself.
"""

from __future__ import annotations

import re

import pytest

from support.databases import KINDS
from support.described_api import Described
from support.server import Answer, served_on

pytestmark = pytest.mark.slow

CONFIG = {
    "name": "c",
    "group": "script",
    "config": {"any": ["thing"]},
    "inputs": [{"name": "i", "type": "Json", "default": "{}", "replace_on_change": True}, {"name": "v", "value": None}],
    "outputs": [{"name": "o", "error_output": True, "description": "d"}],
    "options": {"a": 1},
}


@pytest.fixture(scope="module", params=KINDS)
def asked(request, tmp_path_factory):
    with served_on(request, tmp_path_factory.mktemp("described")) as stoker:
        yield Described(stoker)


@pytest.fixture(scope="module")
def config(asked):
    return asked.heat("POST", "/software_configs", CONFIG).body["software_config"]["id"]


@pytest.fixture(scope="module")
def server(asked):
    return asked.heat("POST", "/servers", {"name": "s", "labels": {"tier": "web"}}).body["server"]["id"]


def test_filters_of_the_audit_log_and_settings(asked, server):
    assert asked.heat("PATCH", "/servers/s", {"policy": {"allow": "PROJECT"}}).status == 200
    for query, count in (("object=s&action=change%20policy", 1), ("object=s&until=2020-01-01T00:00:00Z", 0)):
        assert len(asked.heat("GET", f"/audit?{query}").body["audit"]) == count
    assert asked.heat("GET", "/audit?since=2020-01-01").status == 400
    assert asked.heat("GET", "/settings").body["settings"][0]["name"] == "host"


def test_deployments_and_their_runs(asked, config, server):
    given = {"config_id": config, "server_id": server}
    plain = asked.heat("POST", "/software_deployments", given).body["software_deployment"]["id"]
    derived = {**given, "signal_transport": "CFN_SIGNAL", "input_values": {"i": {}}, "timeout": 60}
    run = asked.heat("POST", "/software_deployments", derived).body["software_deployment"]["id"]
    for wanted, ids in (("c", {run, plain}), (config, {plain}), ("absent", set())):
        listed = asked.heat("GET", f"/software_deployments?config={wanted}&server_id={server}").body
        assert {each["id"] for each in listed["software_deployments"]} == ids
    path = f"/software_deployments/{run}"
    assert asked.heat("GET", f"{path}/logs?before=9").status == 200
    assert asked.heat("GET", f"{path}/logs/stdin").status == 404
    assert asked.heat("POST", f"{path}/signal", {"deploy_status_code": 1}).body == {"status": "FAILED"}
    ended = {"status": "COMPLETE", "output_values": {"o": [1]}}
    assert asked.heat("PUT", f"/software_deployments/{plain}", ended).status == 200


def test_triggers_and_schedules(asked, config, server):
    said = {"config_id": config, "servers": [server], "action": "A", "input_values": {"i": {}}, "timeout": 1.5}
    path = f"/software_triggers/{asked.heat('POST', '/software_triggers', said).body['software_trigger']['id']}"
    assert len(asked.heat("GET", f"{path}/targets?limit=1&status=IN_PROGRESS").body["targets"]) == 1
    assert asked.heat("GET", f"{path}/targets?marker=0").body["targets"] == []
    assert asked.heat("GET", f"{path}/targets?marker=x").status == 400
    (compact,) = asked.heat("GET", f"{path}/targets/compact?limit=1&status=IN_PROGRESS").body["targets"]
    assert (compact["state"], compact["digest"]) == ("QUEUED", None)
    assert asked.heat("GET", f"{path}/output_groups").body == {"output_groups": [], "total": 0}
    assert asked.heat("POST", f"{path}/cancel").body["software_trigger"]["status"] == "CANCELLED"
    events = f"/events?subject=trigger:{path.rpartition('/')[2]}"
    assert asked.heat("GET", events).raw.endswith(b"\n\n")
    states = asked.heat("GET", f"{events}&events=state&events=trigger")
    assert re.findall(rb"event: (\w+)", states.raw) == [b"hello", b"state", b"trigger", b"end"]
    for query in ("/events", "/events?subject=trigger", f"{events}&events=all"):
        assert asked.heat("GET", query).status == 400
    assert asked.heat("GET", f"{path}/targets/compact").body["cursor"].startswith("t")
    (group,) = asked.heat("GET", f"{path}/output_groups?limit=1&status=CANCELLED").body["output_groups"]
    assert (group["exit_code"], group["servers"]) == (None, ["s"])
    wanted = {"name": "nightly", "trigger": said, "cron": "0 2 * * *", "timezone": "Europe/Vienna"}
    made = asked.heat("POST", "/software_schedules", wanted).body["software_schedule"]
    path = f"/software_schedules/{made['id']}"
    assert asked.heat("PATCH", path, {"name": made["name"]}).body["software_schedule"] == made
    assert asked.heat("GET", "/software_schedules?next_before=2026-01-01").status == 400
    now = asked.heat("POST", f"{path}/run").body["software_trigger"]
    assert (now["schedule_id"], now["total"]) == (made["id"], 1)
    assert asked.heat("PATCH", path, {"enabled": False}).body["software_schedule"]["next_time"] is None


def test_types_and_versions(asked):
    for name in asked.heat("GET", "/resource_types").body["resource_types"]:
        for below in ("?with_description=true", "/template?template_type=hot", "/template"):
            assert asked.heat("GET", f"/resource_types/{name}{below}").status == 200
    described = asked.heat("GET", "/resource_types?with_description=true&name=OS::Heat").body["resource_types"]
    assert {"resource_type", "description"} <= set(described[0])
    for each in asked.heat("GET", "/template_versions").body["template_versions"]:
        assert asked.heat("GET", f"/template_versions/{each['version']}/functions").status == 200


def test_checks_and_files_of_agents(asked, config):
    created = asked.heat("POST", "/servers", {"name": "enrolled"}).body
    key = asked.ask("POST", "/agent/v1/enroll", {"token": created["enrollment"]["token"], "instance": "i"}).body["key"]
    headers = {"Authorization": f"Bearer {key}", "X-Stoker-Agent": "0.1.0; hooks=script; modes=check"}
    deployment = {"config_id": config, "server_id": created["server"]["id"], "signal_transport": "STOKER_SIGNAL"}
    assert asked.heat("POST", "/software_deployments", {**deployment, "input_values": {"i": {}}}).status == 200
    document = asked.ask("GET", "/agent/v1/document?wait=0", headers=headers)
    (run,) = document.body["deployments"]
    hook = asked.heat("POST", "/hooks", {"name": "shout", "content": "IyEvYmluL3NoCg==", "public": True}).body["hook"]
    for path, etag in (("document", document.headers["ETag"]), (f"hooks/{hook['sha256']}", f'"{hook["sha256"]}"')):
        assert asked.ask("GET", f"/agent/v1/{path}", headers={**headers, "If-None-Match": etag}).status == 304
    signal = f"/agent/v1/runs/{run['id']}/signal"
    assert asked.ask("POST", signal, {"deploy_status_code": 0}, headers).body == {"status": "COMPLETE"}

    for body, status in (({"selector": "tier=none"}, 202), ({"servers": ["none"]}, 404), ({}, 400)):
        assert asked.heat("POST", "/checks", body).status == status
    assert asked.heat("POST", "/checks", {"servers": ["enrolled"]}).status == 202
    (entry,) = asked.ask("GET", "/agent/v1/document", headers=headers).body["checks"]
    assert asked.heat("GET", "/checks?server=enrolled&selector=kernel!=5").body["checks"][0]["pending"]
    changes = [{"item": "/etc/motd", "outcome": "changed", "diff": "-a"}]
    report = {"config_id": run["id"], "state": "DRIFTED", "changes": changes, "requested": entry["requested"]}
    id = run["deployment_id"]
    assert asked.ask("POST", f"/agent/v1/checks/{id}", report, headers).status == 204
    assert asked.ask("POST", f"/agent/v1/checks/{id}", {**report, "state": "ODD"}, headers).status == 400
    assert asked.ask("POST", "/agent/v1/checks/none", report, headers).status == 404
    for path in ("/checks/none", "/checks?stack=none"):
        assert asked.heat("GET", path).status == 404
    for query in (f"?deployment_id=none&deployment_id={id}", "?marker=none"):
        assert [each["deployment_id"] for each in asked.heat("GET", f"/checks{query}").body["checks"]] == [id]
    for query in ("?limit=0", "?deployment_id=none"):
        assert asked.heat("GET", f"/checks{query}").body == {"checks": []}
    assert asked.heat("GET", "/checks?limit=-1").status == 400
    for path, status in (("none", 404), (id, 202), (id, 409)):
        assert asked.heat("POST", f"/checks/{path}/repair").status == status


def test_relays(asked):
    body = {"name": "site", "url": "https://relay.example:8005"}
    made = asked.heat("POST", "/relays", body).body["relay"]
    assert asked.heat("POST", "/relays", body).status == 409
    for wrong in ({"name": "-"}, {"url": "relay.example"}, {"url": "http://x:y"}, {"ca": "no PEM"}):
        assert asked.heat("POST", "/relays", {**body, **wrong}).status == 400
    for path, named in (("/servers", {"name": "at-site", "relay": "site"}), ("/enrollments", {"relay": made["id"]})):
        enrollment = asked.heat("POST", path, {"limit": 1, **named}).body["enrollment"]
        assert (enrollment["url"], body["url"] in enrollment["command"]) == (body["url"], True)
    assert asked.heat("POST", "/servers", {"name": "elsewhere", "relay": "none"}).status == 404
    own = {"Authorization": f"Bearer {made['key']}"}
    script = asked.ask("GET", "/relay/v1/install", headers=own)
    unchanged = {**own, "If-None-Match": script.headers["ETag"]}
    assert asked.ask("GET", "/relay/v1/install", headers=unchanged).status == 304
    for status in (204, 404):
        assert asked.heat("DELETE", f"/relays/{made['id']}").status == status


def test_a_server_that_waits_for_approval(asked):
    many = asked.heat("POST", "/enrollments", {"limit": 3, "labels": {"a": "b"}, "approval": True}).body["enrollment"]
    who = {"token": many["token"], "instance": "x", "machine": "mx", "hostname": "x", "cloud_id": "c"}
    headers = {"Authorization": f"Bearer {asked.ask('POST', '/agent/v1/enroll', who).body['key']}"}
    assert asked.ask("GET", "/agent/v1/document", headers=headers).status == 403
    assert asked.ask("GET", "/agent/v1/approval?wait=0", headers=headers).body == {"status": "PENDING_APPROVAL"}
    assert asked.heat("POST", "/servers/x/approve").body["server"]["status"] == "NEVER_SEEN"
    assert asked.ask("GET", "/agent/v1/approval", headers=headers).body == {"status": "APPROVED"}


def test_an_answer_that_differs_from_its_description_is_detected(asked):
    with pytest.raises(AssertionError, match="surprise"):
        asked.check(
            "GET",
            "/healthz",
            Answer(200, {"Content-Type": "application/json"}, b'{"status": "ok", "version": "1", "surprise": 1}'),
        )
    with pytest.raises(AssertionError, match="418"):
        asked.check("GET", "/healthz", Answer(418, {}, b"{}"))
