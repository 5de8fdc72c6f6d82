"""A walk through what there is to ask: every answer is as /openapi.json says."""

from __future__ import annotations

import hashlib
import re

import pytest

from stoker.http.apis import DESCRIBED
from support.described_api import Described
from support.server import Answer, served
from support.templates import define, deployment, template

pytestmark = pytest.mark.slow

CHILD = """
heat_template_version: 2018-08-31
parameters: {word: {type: string}}
resources: {inner: {type: OS::Heat::Value, properties: {value: {get_param: word}}}}
outputs: {said: {value: {get_attr: [inner, value]}}}
"""
TEMPLATE = template(
    {
        "config": define(
            "OS::Heat::SoftwareConfig",
            group="script",
            config="true",
            inputs=[{"name": "i", "type": "Number", "default": 1}],
            outputs=[{"name": "o"}],
        ),
        "server": {"type": "OS::Heat::DeployedServer", "metadata": {"a": 1}},
        "run": deployment(signal_transport="HEAT_SIGNAL"),
        "child": define("child.yaml", word="w"),
        "random": define("OS::Heat::RandomString", length={"get_param": "count"}),
    },
    description="walked through",
    parameter_groups=[{"label": "all", "parameters": ["count"]}],
    parameters={
        "count": {"type": "number", "default": 2, "constraints": [{"range": {"min": 1}, "description": "positive"}]},
        "secret": {"type": "string", "default": "x", "hidden": True, "tags": ["a"]},
        "list": {"type": "comma_delimited_list", "default": "a,b"},
        "map": {"type": "json", "default": {"a": 1}},
    },
    outputs={
        "o": {"description": "what came", "value": {"get_attr": ["run", "o"]}},
        "random": {"value": {"get_attr": ["random", "value"]}},
        "broken": {"value": {"str_split": [",", {"get_attr": ["run", "o"]}]}},
    },
)
BODY = {"stack_name": "walked", "template": TEMPLATE, "files": {"child.yaml": CHILD}, "tags": "a,b"}
CONFIG = {
    "name": "c",
    "group": "script",
    "config": {"any": ["thing"]},
    "inputs": [{"name": "i", "type": "Json", "default": "{}", "replace_on_change": True}, {"name": "v", "value": None}],
    "outputs": [{"name": "o", "error_output": True, "description": "d"}],
    "options": {"a": 1},
}


@pytest.fixture
def asked(tmp_path, database_url):
    with served(tmp_path, database=database_url) as stoker:
        yield Described(stoker)


def test_every_answer_matches_its_description(asked):
    software(asked)
    artifacts(asked)
    stacks(asked)
    types(asked)
    agent(asked)
    left = {(row.verb, row.path) for row in DESCRIBED} - asked.seen
    assert left == set()


def software(asked):
    server = asked.heat("POST", "/servers", {"name": "s"}).body["server"]["id"]
    asked.heat("GET", "/servers")
    asked.heat("GET", "/servers/s")
    asked.heat("PATCH", "/servers/s", {"labels": {"tier": "web"}, "policy": {"allow": [{"stack": "walked"}]}})
    asked.heat("PATCH", "/servers/s", {"policy": {"maintenance_windows": [{"cron": "0 2 * * *", "minutes": 1440}]}})
    asked.heat("GET", "/servers?labels=tier=web")
    assert asked.heat("GET", "/servers?sort=-name&group=script").body["servers"][0]["denial"] is None
    assert asked.heat("GET", "/server_counts?labels=tier=web").body["server_counts"]["total"] == 1
    assert asked.heat("POST", "/console_codes").body["console_code"]["code"]
    assert "tier" in {each["name"] for each in asked.heat("GET", "/server_facts").body["server_facts"]}
    asked.heat("GET", "/audit?server=s")
    asked.heat("GET", "/audit/site")
    for query, count in (("object=s&action=change%20policy", 2), ("object=s&until=2020-01-01T00:00:00Z", 0)):
        assert len(asked.heat("GET", f"/audit?{query}").body["audit"]) == count
    assert asked.heat("GET", "/audit?since=2020-01-01").status == 400
    assert asked.heat("GET", "/settings").body["settings"][0]["name"] == "host"
    asked.heat("PATCH", "/servers/s", {"policy": None})
    config = asked.heat("POST", "/software_configs", CONFIG).body["software_config"]["id"]
    asked.heat("POST", "/software_configs", {})
    asked.heat("GET", f"/software_configs/{config}")
    asked.heat("GET", "/software_configs?limit=1")
    asked.heat("GET", "/software_configs/none")
    given = {"config_id": config, "server_id": server}
    plain = asked.heat("POST", "/software_deployments", given).body["software_deployment"]
    derived = {**given, "signal_transport": "STOKER_SIGNAL", "input_values": {"i": {}}, "timeout": 60}
    run = asked.heat("POST", "/software_deployments", derived).body["software_deployment"]["id"]
    for below in (
        "",
        f"/{run}",
        f"/{run}/logs",
        f"/{run}/logs?before=9",
        f"/{run}/logs/stdout",
        f"/metadata/{server}",
        f"?server_id={server}",
    ):
        assert asked.heat("GET", f"/software_deployments{below}").status == 200
    assert asked.heat("GET", f"/software_deployments/{run}/logs/stdin").status == 404
    for wanted, ids in (("c", {run, plain["id"]}), (config, {plain["id"]}), ("absent", set())):
        listed = asked.heat("GET", f"/software_deployments?config={wanted}&server_id={server}").body
        assert {each["id"] for each in listed["software_deployments"]} == ids
    asked.heat("PUT", f"/software_deployments/{plain['id']}", {"status": "COMPLETE", "output_values": {"o": [1]}})
    asked.heat("DELETE", f"/software_configs/{config}")  # in use
    runs(asked, config, server)
    triggers(asked, config, server)
    asked.heat("DELETE", f"/software_deployments/{plain['id']}")
    asked.heat("DELETE", "/servers/s")
    asked.heat("GET", f"/software_deployments/{run}")
    asked.heat("DELETE", f"/software_deployments/{run}")
    asked.heat("DELETE", f"/software_configs/{config}")
    asked.ask("POST", "/v1/nobody/software_configs", {})


def runs(asked, config, server):
    said = {"config_id": config, "server_id": server, "signal_transport": "CFN_SIGNAL"}
    path = (
        "/software_deployments/" + asked.heat("POST", "/software_deployments", said).body["software_deployment"]["id"]
    )
    assert asked.heat("POST", f"{path}/retry").status == 409
    assert asked.heat("POST", f"{path}/cancel", {"force": True}).status == 202
    assert asked.heat("POST", f"{path}/cancel").status == 409
    assert asked.heat("POST", f"{path}/retry", {}).status == 202
    assert asked.heat("POST", f"{path}/signal", {"deploy_status_code": 1}).body == {"status": "FAILED"}
    assert [each["number"] for each in asked.heat("GET", f"{path}/runs").body["runs"]] == [2, 1]
    asked.heat("GET", "/software_deployments/none/runs")
    asked.heat("DELETE", path)


def triggers(asked, config, server):
    said = {"config_id": config, "servers": [server], "action": "A", "input_values": {"i": {}}, "timeout": 1.5}
    first = asked.heat("POST", "/software_triggers", said).body["software_trigger"]["id"]
    path = f"/software_triggers/{first}"
    assert asked.heat("DELETE", path).status == 409
    assert asked.heat("GET", path).body["software_trigger"]["targets"][0]["run"]["state"] == "QUEUED"
    assert len(asked.heat("GET", f"{path}/targets?limit=1&status=IN_PROGRESS").body["targets"]) == 1
    assert asked.heat("GET", f"{path}/targets?marker=0").body["targets"] == []
    assert asked.heat("GET", f"{path}/targets?marker=x").status == 400
    (compact,) = asked.heat("GET", f"{path}/targets/compact?limit=1&status=IN_PROGRESS").body["targets"]
    assert (compact["state"], compact["digest"]) == ("QUEUED", None)
    assert asked.heat("GET", f"{path}/output_groups").body == {"output_groups": [], "total": 0}
    assert asked.heat("POST", f"{path}/retry").status == 409
    assert asked.heat("POST", f"{path}/cancel").body["software_trigger"]["status"] == "CANCELLED"
    assert asked.heat("POST", f"{path}/cancel").status == 409
    events = f"/events?subject=trigger:{first}"
    assert asked.heat("GET", events).raw.endswith(b"\n\n")
    states = asked.heat("GET", f"{events}&events=state&events=trigger")
    assert re.findall(rb"event: (\w+)", states.raw) == [b"hello", b"state", b"trigger", b"end"]
    for query in ("", "?subject=trigger", f"?subject=trigger:{first}&events=all"):
        assert asked.heat("GET", f"/events{query}").status == 400
    assert asked.heat("GET", f"{path}/targets/compact").body["cursor"].startswith("t")
    (group,) = asked.heat("GET", f"{path}/output_groups?limit=1&status=CANCELLED").body["output_groups"]
    assert (group["exit_code"], group["servers"]) == (None, ["s"])
    again = asked.heat("POST", f"{path}/retry", {"only_failed": True}).body["software_trigger"]["id"]
    asked.heat("POST", f"/software_triggers/{again}/cancel", {"force": "true"})
    found = asked.heat("GET", "/software_triggers?limit=1&status=CANCELLED").body["software_triggers"]
    assert [each["id"] for each in found] == [again]
    assert len(asked.heat("GET", f"/software_triggers?marker={again}").body["software_triggers"]) == 1
    asked.heat("GET", "/software_triggers?status=x")
    asked.heat("GET", "/software_triggers?stack=none")
    for id in (first, again):
        assert asked.heat("DELETE", f"/software_triggers/{id}").status == 204
    wanted = {"name": "nightly", "trigger": said, "cron": "0 2 * * *", "timezone": "Europe/Vienna"}
    made = asked.heat("POST", "/software_schedules", wanted).body["software_schedule"]
    assert asked.heat("POST", "/software_schedules", wanted).status == 409
    path = f"/software_schedules/{made['id']}"
    assert asked.heat("PATCH", path, {"software_schedule": made}).body["software_schedule"] == made
    assert asked.heat("GET", "/software_schedules?next_before=2026-01-01").status == 400
    assert asked.heat("GET", "/software_schedules/forecast?limit=2").body["more"]
    now = asked.heat("POST", f"{path}/run").body["software_trigger"]
    assert (now["schedule_id"], now["total"]) == (made["id"], 1)
    assert asked.heat("POST", f"/software_triggers/{now['id']}/cancel").status == 202
    assert asked.heat("GET", "/overview").body["overview"]["schedules_of_next_day"]["count"] == 1
    assert asked.heat("PATCH", path, {"enabled": False}).body["software_schedule"]["next_time"] is None
    asked.heat("GET", path)
    asked.heat("GET", "/software_schedules")
    assert asked.heat("DELETE", path).status == 204
    asked.heat("GET", path)


def artifacts(asked):
    hook = {"name": "shout", "content": "IyEvYmluL3NoCg=="}
    asked.heat("POST", "/hooks", hook)
    asked.heat("GET", "/hooks")
    asked.heat("GET", "/hooks/shout/1")
    assert asked.heat("DELETE", "/hooks/shout/1").status == 204
    asked.heat("GET", "/hooks/shout/1")
    assert asked.heat("POST", "/hooks", {**hook, "public": True}).status == 201
    text = "stoker_catalog_version: 1\nname: greet\nversion: 1\ndescription: d\ngroup: script\nconfig: echo\n"
    asked.heat("POST", "/catalog", {"text": text})
    assert asked.heat("POST", "/catalog", {"text": text}).status == 409
    asked.heat("GET", "/catalog")
    asked.heat("GET", "/catalog/nginx/1")
    assert asked.heat("DELETE", "/catalog/greet/1").status == 204


def stacks(asked):
    asked.heat("POST", "/stacks/preview", BODY)
    assert asked.heat("POST", "/stacks/server_previews", BODY).status == 201
    path = "/stacks/walked/" + asked.heat("POST", "/stacks", BODY).body["stack"]["id"]
    assert asked.heat("POST", "/stacks", BODY).status == 409
    resources = asked.heat("GET", f"{path}/resources?nested_depth=2&with_detail=true").body["resources"]
    assert len(resources) == 6
    assert any("deployment" in each for each in resources)
    graph = asked.heat("GET", f"{path}/graph?nested_depth=2").body["graph"]
    assert {each["resource_name"] for each in graph["nodes"]} == {each["resource_name"] for each in resources}
    assert len(graph["edges"]) == 2
    asked.heat("GET", path)
    said = {"deploy_status_code": 0, "o": {"x": 1}}
    assert asked.heat("POST", f"{path}/resources/run/signal", said).status == 200
    asked.stoker.until(lambda: asked.heat("GET", path).body["stack"]["stack_status"] == "CREATE_COMPLETE")
    assert any("output_error" in each for each in asked.heat("GET", path).body["stack"]["outputs"])
    below = ("/template", "/environment", "/files", "/outputs", "/outputs/o", "/export", "/resources", "/events")
    for each in (*below, "/resources/run", "/resources/server/metadata", "/resources/run/events", "/snapshots"):
        assert asked.heat("GET", path + each).status == 200
    for each in asked.heat("GET", f"{path}/resources?with_detail=true").body["resources"]:  # read ahead, and alone
        alone = asked.heat("GET", f"{path}/resources/{each['resource_name']}").body["resource"]
        # A multipart's boundary is made up anew each time.
        assert re.sub(r"=\d+==", "", str(alone)) == re.sub(r"=\d+==", "", str(each))
    event = asked.heat("GET", f"{path}/resources/run/events?limit=1").body["events"][0]["id"]
    asked.heat("GET", f"{path}/resources/run/events/{event}")
    assert asked.heat("GET", f"{path}/events?nested_depth=3&sort_dir=asc").body["events"]
    for listed in ("/stacks?limit=1&with_count=true", "/stacks/detail", "/stacks?show_nested=true"):
        assert asked.heat("GET", listed).body["stacks"]
    for row in [row for row in DESCRIBED if row.path.startswith("/v1/{project}/stacks/{stack_name}")]:
        if "{stack_id}" not in row.path:
            answer = asked.ask(row.verb, row.path.format(project=asked.stoker.project, stack_name="walked"))
            assert answer.status == 302
    changed = {"parameters": {"count": 3}, "files": BODY["files"]}
    for verb in ("PUT", "PATCH"):
        asked.heat(verb, f"{path}/preview", {**changed, "template": TEMPLATE})
        assert asked.heat(verb, path, {**changed, "template": TEMPLATE}).status == 202
        asked.stoker.until(lambda: asked.heat("GET", path).body["stack"]["stack_status"] == "UPDATE_COMPLETE")
    assert asked.heat("PATCH", f"{path}/resources/random", {"mark_unhealthy": True}).status == 200
    asked.heat("POST", f"{path}/actions", {"check": None})
    asked.heat("POST", f"{path}/actions", {"surprise": None})
    snapshot = f"{path}/snapshots/" + asked.heat("POST", f"{path}/snapshots", {"name": "n"}).body["id"]
    for verb, each in (("GET", snapshot), ("GET", f"{path}/snapshots"), ("POST", f"{snapshot}/restore")):
        asked.heat(verb, each)
    asked.stoker.until(lambda: "IN_PROGRESS" not in asked.heat("GET", path).body["stack"]["stack_status"])
    asked.heat("DELETE", snapshot)
    asked.heat("DELETE", f"{path}/abandon")
    asked.heat("GET", path)
    second = asked.heat("POST", "/stacks", {**BODY, "stack_name": "second"}).body["stack"]["id"]
    asked.heat("DELETE", f"/stacks/second/{second}")
    asked.heat("GET", "/stacks?show_deleted=true")


def types(asked):
    for name in asked.heat("GET", "/resource_types").body["resource_types"]:
        asked.heat("GET", f"/resource_types/{name}?with_description=true")
        asked.heat("GET", f"/resource_types/{name}/template?template_type=hot")
        asked.heat("GET", f"/resource_types/{name}/template")
    asked.heat("GET", "/resource_types?with_description=true&name=OS::Heat")
    for each in asked.heat("GET", "/template_versions").body["template_versions"]:
        asked.heat("GET", f"/template_versions/{each['version']}/functions")
    body = {"template": TEMPLATE, "files": BODY["files"], "parameters": {"secret": "y"}}
    assert "NestedParameters" in asked.heat("POST", "/validate?show_nested=true", body).body
    asked.heat("POST", "/validate", {"template": {}})
    asked.heat("GET", "/build_info")
    asked.heat("GET", "/services")
    for path in ("/", "/versions", "/v1", "/healthz", "/openapi.json", "/metrics"):
        asked.ask("GET", path)


def agent(asked):
    made = asked.heat("POST", "/servers", {"name": "enrolled"}).body
    token = made["enrollment"]["token"]
    assert asked.ask("POST", "/agent/v1/enroll", {"token": "wrong", "instance": "i"}).status == 401
    key = asked.ask("POST", "/agent/v1/enroll", {"token": token, "instance": "i", "hostname": "h"}).body["key"]
    headers = {"Authorization": f"Bearer {key}", "X-Stoker-Agent": "0.1.0; hooks=script; modes=check"}
    enrollments(asked)
    config = asked.heat("POST", "/software_configs", CONFIG).body["software_config"]["id"]
    deployment = {"config_id": config, "server_id": made["server"]["id"], "signal_transport": "STOKER_SIGNAL"}
    assert asked.heat("POST", "/software_deployments", {**deployment, "input_values": {"i": {}}}).status == 200
    document = asked.ask("GET", "/agent/v1/document?wait=0", headers=headers)
    unchanged = {**headers, "If-None-Match": document.headers["ETag"]}
    assert asked.ask("GET", "/agent/v1/document", headers=unchanged).status == 304
    run = f"/agent/v1/runs/{document.body['deployments'][0]['id']}"
    for progress in ({"beat": True}, {"percent": 5, "message": "m", "state": "RUNNING"}):
        assert asked.ask("POST", f"{run}/progress", progress, headers).status == 204
    assert asked.ask("POST", f"{run}/logs?stream=stdout&offset=0", b"text", headers).body == {"offset": 4}
    assert asked.ask("POST", f"{run}/signal", {"deploy_status_code": 0}, headers).body == {"status": "COMPLETE"}
    assert asked.ask("PUT", "/agent/v1/facts", {"os": {"id": "debian"}, "custom": {"rack": 4}}, headers).status == 204
    assert asked.heat("GET", "/servers/enrolled").body["server"]["os"] == "debian"
    checks(asked, document.body["deployments"][0], headers)
    assert asked.ask("POST", "/agent/v1/refusals", {"source": "zaqar", "reason": "r"}, headers).status == 204
    digest = hashlib.sha256(b"#!/bin/sh\n").hexdigest()
    for etag, expected in (("", 200), (f'"{digest}"', 304)):
        conditional = {**headers, "If-None-Match": etag}
        assert asked.ask("GET", f"/agent/v1/hooks/{digest}", headers=conditional).status == expected
    relays(asked, key)
    assert asked.ask("DELETE", "/agent/v1/server", headers=headers).body == {"status": "DELETED"}
    for path in ("install", "stoker-agent.pyz"):
        assert asked.ask("GET", f"/agent/v1/{path}").status == 200


def checks(asked, run, headers):
    assert asked.heat("POST", "/checks", {"servers": ["enrolled"]}).status == 202
    assert asked.heat("POST", "/checks", {"selector": "tier=none"}).body == {"checks": []}
    assert asked.heat("POST", "/checks", {"servers": ["none"]}).status == 404
    assert asked.heat("POST", "/checks", {}).status == 400
    (entry,) = asked.ask("GET", "/agent/v1/document", headers=headers).body["checks"]
    assert asked.heat("GET", "/checks?server=enrolled&selector=kernel!=5").body["checks"][0]["pending"]
    changes = [{"item": "/etc/motd", "outcome": "changed", "diff": "-a"}]
    report = {"config_id": run["id"], "state": "DRIFTED", "changes": changes, "requested": entry["requested"]}
    path = f"/checks/{run['deployment_id']}"
    assert asked.ask("POST", f"/agent/v1{path}", report, headers).status == 204
    assert asked.ask("POST", f"/agent/v1{path}", {**report, "state": "ODD"}, headers).status == 400
    assert asked.ask("POST", "/agent/v1/checks/none", report, headers).status == 404
    (listed,) = asked.heat("GET", "/checks?state=DRIFTED").body["checks"]
    assert (listed["state"], listed["summary"], listed["pending"]) == ("DRIFTED", "/etc/motd", False)
    assert asked.heat("GET", path).body["check"]["changes"] == changes
    assert asked.heat("GET", "/checks/none").status == 404
    assert asked.heat("GET", "/checks?stack=none").status == 404
    id = listed["deployment_id"]
    for query in ("?limit=1", f"?deployment_id=none&deployment_id={id}", "?marker=none"):
        assert [each["deployment_id"] for each in asked.heat("GET", f"/checks{query}").body["checks"]] == [id]
    for query in ("?limit=0", f"?marker={id}", "?deployment_id=none"):
        assert asked.heat("GET", f"/checks{query}").body == {"checks": []}
    assert asked.heat("GET", "/checks?limit=-1").status == 400
    assert asked.heat("POST", "/checks/none/repair").status == 404
    assert asked.heat("POST", f"{path}/repair").status == 202
    assert asked.heat("POST", f"{path}/repair").status == 409


def relays(asked, key):
    body = {"name": "site", "url": "https://relay.example:8005"}
    made = asked.heat("POST", "/relays", body).body["relay"]
    assert asked.heat("POST", "/relays", body).status == 409
    for wrong in ({"name": "-"}, {"url": "relay.example"}, {"url": "http://x:y"}, {"ca": "no PEM"}):
        assert asked.heat("POST", "/relays", {**body, **wrong}).status == 400
    enrolled = asked.heat("POST", "/servers", {"name": "at-site", "relay": "site"}).body["enrollment"]
    assert enrolled["url"] == body["url"]
    assert body["url"] in enrolled["command"]
    assert (
        asked.heat("POST", "/enrollments", {"limit": 1, "relay": made["id"]}).body["enrollment"]["url"] == body["url"]
    )
    assert asked.heat("POST", "/servers", {"name": "elsewhere", "relay": "none"}).status == 404
    own = {"Authorization": f"Bearer {made['key']}"}
    following = {"agents": {"0.1.0; hooks=script": [key, "wrong.key"]}}
    changes = asked.ask("POST", "/relay/v1/changes?wait=0", following, own).body
    assert (len(changes["revisions"]), changes["refused"]) == (1, ["wrong"])
    script = asked.ask("GET", "/relay/v1/install", headers=own)
    assert script.status == 200
    unchanged = {**own, "If-None-Match": script.headers["ETag"]}
    assert asked.ask("GET", "/relay/v1/install", headers=unchanged).status == 304
    [listed] = asked.heat("GET", "/relays").body["relays"]
    assert (listed["online"], listed["agents"]) == (True, 1)
    assert asked.heat("DELETE", f"/relays/{made['id']}").status == 204
    assert asked.heat("DELETE", f"/relays/{made['id']}").status == 404
    assert asked.ask("GET", "/relay/v1/install", headers=own).status == 401


def enrollments(asked):
    many = asked.heat("POST", "/enrollments", {"limit": 3, "labels": {"a": "b"}, "approval": True}).body["enrollment"]
    for name in ("x", "y"):
        who = {"token": many["token"], "instance": name, "machine": "m" + name, "hostname": name, "cloud_id": "c"}
        key = asked.ask("POST", "/agent/v1/enroll", who).body["key"]
    headers = {"Authorization": f"Bearer {key}"}
    assert asked.ask("GET", "/agent/v1/document", headers=headers).status == 403
    assert asked.ask("GET", "/agent/v1/approval?wait=0", headers=headers).body == {"status": "PENDING_APPROVAL"}
    assert asked.heat("POST", "/servers/y/approve").body["server"]["status"] == "NEVER_SEEN"
    assert asked.heat("POST", "/servers/y/approve").status == 409
    assert asked.heat("POST", "/servers/x/reject").status == 204
    assert asked.ask("GET", "/agent/v1/approval", headers=headers).body == {"status": "APPROVED"}
    listed = asked.heat("GET", "/enrollments").body["enrollments"]
    assert [each["uses"] for each in listed if each["id"] == many["id"]] == [2]
    assert asked.heat("DELETE", f"/enrollments/{many['id']}").status == 204


def test_an_answer_that_differs_from_its_description_is_detected(asked):
    with pytest.raises(AssertionError, match="surprise"):
        asked.check(
            "GET",
            "/healthz",
            Answer(200, {"Content-Type": "application/json"}, b'{"status": "ok", "version": "1", "surprise": 1}'),
        )
    with pytest.raises(AssertionError, match="418"):
        asked.check("GET", "/healthz", Answer(418, {}, b"{}"))
