"""Whoever may not do a thing learns nothing: not whether it is there, and not by a difference in the answer."""

from __future__ import annotations

import hashlib
import sqlite3
import time
import uuid

import pytest

from support.server import Answer

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {"value": {"type": "OS::Heat::Value", "properties": {"value": "secret"}}},
    "outputs": {"secret": {"value": {"get_attr": ["value", "value"]}}},
}


@pytest.fixture(scope="module")
def other(stoker):
    """A token of another project, made where tokens are kept: (token, its project)."""
    return token(stoker, ["member", "reader"])


def token(stoker, roles, *, project=None, lives=3600):
    made, user = uuid.uuid4().hex, uuid.uuid4().hex
    now = int(time.time() * 1e6)
    with sqlite3.connect(stoker.state_dir / "stoker.db", timeout=30) as database:
        if project is None:
            project = uuid.uuid4().hex
            database.execute("INSERT INTO projects VALUES (?, ?, 'default', '', 1)", (project, f"p-{project}"))
        columns = [row[1] for row in database.execute("PRAGMA table_info(users)")]
        values = {"id": user, "name": f"u-{user}", "domain_id": "default", "password_hash": "x", "enabled": 1}
        row = [values.get(name, "" if name == "description" else None) for name in columns]
        database.execute(f"INSERT INTO users VALUES ({','.join('?' * len(row))})", row)
        for role in roles:
            database.execute(
                "INSERT INTO assignments (user_id, project_id, role) VALUES (?, ?, ?)", (user, project, role)
            )
        database.execute(
            "INSERT INTO tokens (hash, user_id, project_id, issued_at, expires_at) VALUES (?, ?, ?, ?, ?)",
            (hashlib.sha256(made.encode()).hexdigest(), user, project, now, now + int(lives * 1e6)),
        )
    return made, project


@pytest.fixture(scope="module")
def things(stoker):
    """One of everything in the administrator's project."""
    stack = stoker.heat("POST", "/stacks", {"stack_name": "mine", "template": TEMPLATE}).body["stack"]["id"]
    config = stoker.heat("POST", "/software_configs", {"name": "mine", "config": "secret"}).body["software_config"][
        "id"
    ]
    server = stoker.heat("POST", "/servers", {"name": "mine"}).body["server"]["id"]
    said = {"config_id": config, "server_id": server}
    deployment = stoker.heat("POST", "/software_deployments", said).body["software_deployment"]["id"]
    return {"stack": stack, "config": config, "server": server, "deployment": deployment}


PLACES = [
    "/stacks/mine",
    "/stacks/{stack}",
    "/stacks/mine/{stack}",
    "/stacks/mine/{stack}/outputs/secret",
    "/stacks/mine/{stack}/template",
    "/stacks/mine/{stack}/resources/value",
    "/stacks/mine/{stack}/resources/value/metadata",
    "/stacks/mine/{stack}/events",
    "/software_configs/{config}",
    "/software_deployments/{deployment}",
    "/software_deployments/{deployment}/logs",
    "/servers/{server}",
    "/servers/mine",
]


def masked(answer: Answer, *words: str) -> bytes:
    raw = answer.raw
    for word in words:
        raw = raw.replace(word.encode(), b"?")
    return raw


@pytest.mark.parametrize("place", PLACES)
def test_another_projects_token_finds_nothing_in_its_own(stoker, other, things, place):
    made, project = other
    headers = {"X-Auth-Token": made}
    there = stoker.request("GET", f"/v1/{project}{place.format(**things)}", headers=headers)
    nothing = {name: str(uuid.uuid4()) for name in things}
    not_there = stoker.request("GET", f"/v1/{project}{place.format(**nothing)}", headers=headers)
    assert there.status == not_there.status == 404
    assert masked(there, *things.values()) == masked(not_there, *nothing.values())


@pytest.mark.parametrize("place", PLACES)
def test_another_projects_token_may_not_enter(stoker, other, things, place):
    made, _ = other
    answer = stoker.heat("GET", place.format(**things), **{"X-Auth-Token": made})
    assert answer.status == 403
    assert b"secret" not in answer.raw


def test_lists_are_of_ones_own_project(stoker, other, things):
    made, project = other
    for path, key in (
        ("/stacks?show_deleted=true", "stacks"),
        ("/stacks?tenant=" + stoker.project, "stacks"),
        ("/software_configs", "software_configs"),
        (f"/software_deployments?server_id={things['server']}", "software_deployments"),
        (f"/software_deployments/metadata/{things['server']}", "metadata"),
        ("/servers", "servers"),
    ):
        answer = stoker.request("GET", f"/v1/{project}{path}", headers={"X-Auth-Token": made})
        assert (answer.status, answer.body[key]) == (200, []), path


@pytest.mark.parametrize("said", ["", "garbage", "x" * 10_000, "ü".encode().decode("latin-1")])
def test_a_wrong_token_is_401_whatever_is_asked(stoker, things, said):
    for place in (*PLACES, "/nothing/like/it", "/stacks/none/none"):
        answer = stoker.heat("GET", place.format(**things), **{"X-Auth-Token": said})
        assert answer.status in (401, 404 if place == "/nothing/like/it" else 401)
        assert b"secret" not in answer.raw


def test_no_token_at_all_is_401_and_names_where_to_get_one(stoker):
    answer = stoker.request("GET", f"/v1/{stoker.project}/stacks")
    assert answer.status == 401
    assert "Keystone" in answer.headers["WWW-Authenticate"]


def test_an_expired_token_is_401(stoker):
    made, project = token(stoker, ["member"], lives=-1)
    assert stoker.request("GET", f"/v1/{project}/stacks", headers={"X-Auth-Token": made}).status == 401


def test_a_revoked_token_is_401_at_once(stoker):
    made = stoker.login().headers["X-Subject-Token"]
    headers = {"X-Auth-Token": made, "X-Subject-Token": made}
    assert stoker.heat("GET", "/stacks", **{"X-Auth-Token": made}).status == 200
    assert stoker.request("DELETE", "/identity/v3/auth/tokens", headers=headers).status == 204
    assert stoker.heat("GET", "/stacks", **{"X-Auth-Token": made}).status == 401


WRITES = [
    ("POST", "/stacks", {"stack_name": "theirs", "template": TEMPLATE}),
    ("PUT", "/stacks/mine/{stack}", {"template": TEMPLATE}),
    ("PATCH", "/stacks/mine/{stack}", {}),
    ("DELETE", "/stacks/mine/{stack}", None),
    ("DELETE", "/stacks/mine/{stack}/abandon", None),
    ("POST", "/stacks/mine/{stack}/actions", {"suspend": None}),
    ("POST", "/stacks/mine/{stack}/snapshots", {}),
    ("PATCH", "/stacks/mine/{stack}/resources/value", {"mark_unhealthy": True}),
    ("POST", "/software_configs", {}),
    ("DELETE", "/software_configs/{config}", None),
    ("POST", "/software_deployments", {"config_id": "{config}", "server_id": "x"}),
    ("PUT", "/software_deployments/{deployment}", {"status": "COMPLETE"}),
    ("DELETE", "/software_deployments/{deployment}", None),
    ("POST", "/servers", {"name": "theirs"}),
    ("DELETE", "/servers/mine", None),
]


@pytest.mark.parametrize(("verb", "place", "body"), WRITES)
@pytest.mark.parametrize("role", ["reader", "heat_stack_user"])
def test_who_may_only_read_changes_nothing(stoker, things, verb, place, body, role):
    made, _ = token(stoker, [role], project=stoker.project)
    answer = stoker.heat(verb, place.format(**things), body, **{"X-Auth-Token": made})
    assert answer.status == 403
    assert stoker.heat("GET", f"/stacks/mine/{things['stack']}").body["stack"]["stack_status"] == "CREATE_COMPLETE"


@pytest.mark.parametrize("place", PLACES[2:4])
def test_who_is_a_reader_reads_and_a_servers_user_does_not(stoker, things, place):
    reader, _ = token(stoker, ["reader"], project=stoker.project)
    agent, _ = token(stoker, ["heat_stack_user"], project=stoker.project)
    assert stoker.heat("GET", place.format(**things), **{"X-Auth-Token": reader}).status == 200
    assert stoker.heat("GET", place.format(**things), **{"X-Auth-Token": agent}).status == 403


def enrolled(stoker):
    made = stoker.heat("POST", "/servers", {"name": f"server-{uuid.uuid4().hex}"}).body
    said = {"token": made["enrolment"]["token"], "instance": "i", "hostname": "h", "agent": {"version": "1"}}
    return made["server"]["id"], stoker.request("POST", "/agent/v1/enroll", said).body["key"]


def running(stoker, server):
    config = stoker.heat("POST", "/software_configs", {"group": "script", "config": "secret"}).body["software_config"]
    said = {"config_id": config["id"], "server_id": server, "action": "CREATE", "status": "IN_PROGRESS"}
    made = stoker.heat("POST", "/software_deployments", said).body["software_deployment"]
    return made["id"], config["id"]


AGENT_CALLS = [
    ("POST", "/agent/v1/runs/{run}/signal", {"deploy_status_code": 0}),
    ("POST", "/agent/v1/runs/{run}/progress", {"percent": 5}),
    ("POST", "/agent/v1/runs/{run}/logs?stream=stdout&offset=0", b"text"),
]


@pytest.mark.parametrize(("verb", "path", "body"), AGENT_CALLS)
def test_an_agents_key_does_nothing_to_another_servers_run(stoker, verb, path, body):
    (mine, _), (_, foreign) = enrolled(stoker), enrolled(stoker)
    deployment, run = running(stoker, mine)
    headers = {"Authorization": f"Bearer {foreign}"}
    nothing = str(uuid.uuid4())
    there = stoker.request(verb, path.format(run=run), body, headers)
    not_there = stoker.request(verb, path.format(run=nothing), body, headers)
    assert there.status == not_there.status == 404
    assert masked(there, run) == masked(not_there, nothing)
    shown = stoker.heat("GET", f"/software_deployments/{deployment}").body["software_deployment"]
    assert (shown["status"], shown["output_values"]) == ("IN_PROGRESS", {})


def test_an_agents_document_is_its_own(stoker):
    (mine, key), (_, foreign) = enrolled(stoker), enrolled(stoker)
    _, run = running(stoker, mine)

    def seen(key):
        answer = stoker.request("GET", "/agent/v1/document?wait=0", headers={"Authorization": f"Bearer {key}"})
        return [each["id"] for each in answer.body["deployments"]]

    assert seen(key) == [run]
    assert seen(foreign) == []


@pytest.mark.parametrize("said", ["", "Bearer", "Bearer x", "Basic eDp5", "Bearer a.b", "Bearer " + "x" * 9_000])
def test_a_wrong_key_is_401(stoker, said):
    for verb, path, body in (("GET", "/agent/v1/document?wait=0", None), *AGENT_CALLS):
        answer = stoker.request(verb, path.format(run=uuid.uuid4()), body, {"Authorization": said} if said else {})
        assert answer.status == 401


def test_an_agents_key_is_no_token_and_a_token_no_key(stoker):
    _, key = enrolled(stoker)
    assert stoker.heat("GET", "/stacks", **{"X-Auth-Token": key}).status == 401
    headers = {"Authorization": f"Bearer {stoker.token}"}
    assert stoker.request("GET", "/agent/v1/document?wait=0", headers=headers).status == 401


def test_a_signal_token_signals_one_resource_and_nothing_else(stoker):
    handle = {"type": "OS::Heat::WaitConditionHandle"}
    template = {
        "heat_template_version": "2018-08-31",
        "resources": {"one": handle, "two": handle},
        "outputs": {name: {"value": {"get_attr": ["one", name]}} for name in ("token", "endpoint")},
    }
    made = stoker.heat("POST", "/stacks", {"stack_name": "handles", "template": template}).body["stack"]["id"]
    path = f"/stacks/handles/{made}"
    shown = stoker.heat("GET", path).body["stack"]["outputs"]
    told = {each["output_key"]: each["output_value"] for each in shown}
    headers = {"X-Auth-Token": told["token"]}
    assert told["endpoint"].endswith(f"{path}/resources/one/signal")
    assert stoker.heat("POST", f"{path}/resources/one/signal", {"data": "x"}, **headers).status == 200
    assert stoker.heat("POST", f"{path}/resources/two/signal", {}, **headers).status == 403
    assert stoker.heat("POST", f"{path}/resources/one/signal", {"unset_hook": "pre-create"}, **headers).status == 403
    for verb, place in (("GET", path), ("GET", f"{path}/resources/one"), ("DELETE", path), ("GET", "/stacks")):
        assert stoker.heat(verb, place, **headers).status == 401
    forged = told["token"][:-1] + ("0" if told["token"][-1] != "0" else "1")
    assert stoker.heat("POST", f"{path}/resources/one/signal", {}, **{"X-Auth-Token": forged}).status == 401
    assert stoker.heat("GET", f"{path}/resources/one/metadata").body["metadata"]["1"]["data"] == "x"
    stoker.heat("DELETE", path)
    assert stoker.heat("POST", f"{path}/resources/one/signal", {}, **headers).status == 404
