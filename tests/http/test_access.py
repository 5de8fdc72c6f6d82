"""Whoever may not do a thing learns nothing: not whether it is there, and not by a difference in the answer."""

from __future__ import annotations

import uuid
from urllib.parse import quote

import pytest

from support.accounts import Account, create_account, create_project
from support.templates import define, template

pytestmark = pytest.mark.slow

TEMPLATE = template(
    {"value": define("OS::Heat::Value", value="secret")},
    outputs={"secret": {"value": {"get_attr": ["value", "value"]}}},
)


@pytest.fixture(scope="module")
def other(stoker) -> Account:
    """A member of another project."""
    return create_account(stoker, "member", "reader", project=create_project(stoker))


@pytest.fixture(scope="session")
def things(stoker):
    """One of everything in the administrator's project."""
    stack = stoker.create_stack("mine", TEMPLATE).rpartition("/")[2]
    config = stoker.create("software_configs", name="mine", config="secret")["id"]
    server = stoker.create("servers", name="mine")["id"]
    deployment = stoker.create("software_deployments", config_id=config, server_id=server)["id"]
    return {"stack": stack, "config": config, "server": server, "deployment": deployment}


def test_lists_contain_only_the_callers_project(stoker, things):
    empty = create_account(stoker, "member", "reader", project=create_project(stoker))
    for path, key in (
        ("/stacks?show_deleted=true", "stacks"),
        ("/stacks?tenant=" + stoker.project, "stacks"),
        ("/software_configs", "software_configs"),
        (f"/software_deployments?server_id={things['server']}", "software_deployments"),
        (f"/software_deployments/metadata/{things['server']}", "metadata"),
        ("/servers", "servers"),
    ):
        answer = empty.heat("GET", path)
        assert (answer.status, answer.body[key]) == (200, []), path


def test_a_request_without_a_token_is_401_with_the_url_of_the_identity_service(stoker):
    answer = stoker.request("GET", f"/v1/{stoker.project}/stacks")
    assert answer.status == 401
    assert "Keystone" in answer.headers["WWW-Authenticate"]


def test_a_signal_token_sends_signals_while_its_resource_exists(stoker):
    """``security/test_routes_by_actor`` has what it does not open."""
    name = "a b?c;d☃"  # quoted in the URL of its handle
    outputs = {key: {"value": {"get_attr": [name, key]}} for key in ("token", "endpoint")}
    handle = template({name: {"type": "OS::Heat::WaitConditionHandle"}}, outputs=outputs)
    path = stoker.create_stack("handles", handle)
    shown = stoker.outputs(path)
    url, headers = shown["endpoint"].removeprefix(f"{stoker.url}/v1/{stoker.project}"), {"X-Auth-Token": shown["token"]}
    assert url == f"{path}/resources/{quote(name)}/signal"
    assert stoker.heat("POST", url, {"data": "x"}, **headers).status == 200
    assert stoker.heat("POST", url, {"unset_hook": "pre-create"}, **headers).status == 403
    forged = shown["token"][:-1] + ("0" if shown["token"][-1] != "0" else "1")
    assert stoker.heat("POST", url, {}, **{"X-Auth-Token": forged}).status == 401
    metadata = stoker.heat("GET", url.replace("/signal", "/metadata")).body["metadata"]
    assert metadata["1"]["data"] == "x"
    stoker.heat("DELETE", path)
    assert stoker.heat("POST", url, {}, **headers).status == 403


def test_another_projects_config_cannot_be_deployed(other, things):
    answers = []
    for config in (things["config"], str(uuid.uuid4())):
        answer = other.heat("POST", "/software_deployments", {"config_id": config, "server_id": "any"})
        answers.append((answer.status, answer.raw.replace(config.encode(), b"?")))
    assert answers[0] == answers[1]
    assert answers[0][0] == 400


KINDS = {
    "config": define("OS::Heat::SoftwareConfig", config="x"),
    "server": define("OS::Heat::DeployedServer", name="mine"),
    "deployment": define("OS::Heat::SoftwareDeployment", server="any"),
    "stack": define("OS::Heat::ResourceGroup", resource_def={"type": "OS::Heat::SoftwareConfig"}),
}


def came_to_nothing(other, name, said):
    """A stack of another project that reaches for one of the things: it is shown nothing, and its end harms nothing."""
    answer = other.heat("POST", "/stacks", {"stack_name": f"reaches-{name}", **said})
    assert answer.status == 201, answer.raw
    path = f"/stacks/reaches-{name}/{answer.body['stack']['id']}"
    for below in ("", "/resources?with_detail=true", "/export", "/events"):
        assert b"secret" not in other.heat("GET", path + below).raw
    status = other.heat("GET", path).body["stack"]["stack_status"]
    for action in ("suspend", "check"):
        other.heat("POST", f"{path}/actions", {action: None})  # refused or not: it must do no harm
    assert other.heat("DELETE", path).status == 204
    return status


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("spoiled", ["nothing", "a property", "the one before"])
def test_adoption_takes_nothing_of_another_project(stoker, other, things, name, spoiled):
    """Nor does a stack that fails to: what it had only reached for is not its to show or to delete."""
    resource = KINDS[name]
    resources = {name: resource}
    if spoiled == "a property":
        late = {"get_attr": ["wrong", "value", "no such key"]}
        key = next(iter(resource["properties"]))
        resources = {name: {**resource, "properties": {**resource["properties"], key: late}}}
        resources["wrong"] = define("OS::Heat::Value", type="json", value={})
    elif spoiled == "the one before":
        failing = define("OS::Heat::SoftwareDeployment", server="any", config="none")
        resources = {"failing": failing, name: {**resource, "depends_on": "failing"}}
    outputs = {"config": {"value": {"get_attr": [name, "config"]}}} if name == "config" else {}
    adopted = template(resources, outputs=outputs)
    data = {"template": adopted, "resources": {name: {"resource_id": things[name], "resource_data": {}}}}
    said = {"template": adopted, "adopt_stack_data": data}
    came_to_nothing(other, f"{name}-{spoiled.replace(' ', '-')}", said)
    still_there(stoker, things)


@pytest.mark.parametrize("name", KINDS)
def test_an_external_id_cannot_name_objects_of_another_project(stoker, other, things, name):
    resource = {**KINDS[name], "external_id": things[name]}
    said = {"template": template({name: resource})}
    assert came_to_nothing(other, f"external-{name}", said).endswith("FAILED")
    still_there(stoker, things)


def still_there(stoker, things):
    for place in ("/stacks/mine/{stack}", "/software_configs/{config}", "/software_deployments/{deployment}"):
        assert stoker.heat("GET", place.format(**things)).status == 200
    stack = stoker.heat("GET", f"/stacks/mine/{things['stack']}").body["stack"]
    assert stack["stack_status"] == "CREATE_COMPLETE"
    assert stoker.heat("GET", f"/servers/{things['server']}").body["server"]["stack_id"] is None


@pytest.mark.parametrize(("path", "marker"), [("/stacks?marker=", "stack"), ("/software_configs?marker=", "config")])
def test_a_marker_of_another_project_is_unknown(stoker, other, things, path, marker):
    other.create_stack(f"own-{uuid.uuid4().hex}", template({}))
    other.create("software_configs", name="own")
    # Whatever side of the marker what is one's own lies on.
    late = stoker.create("software_configs")["id"]
    for known in (things[marker], late):
        there, not_there = (other.heat("GET", f"{path}{marker}") for marker in (known, uuid.uuid4()))
        assert there.status == not_there.status == 200
        assert there.body == not_there.body
    stoker.heat("DELETE", f"/software_configs/{late}")


def test_a_failed_login_does_not_reveal_whether_a_user_exists(stoker):
    project = stoker.environment["OS_PROJECT_NAME"]
    wrong = [
        {"OS_PASSWORD": "wrong"},
        {"OS_USERNAME": "nobody"},
        {"OS_PROJECT_NAME": f"{project}-none"},
        {"OS_USERNAME": "nobody", "OS_PROJECT_NAME": f"{project}-none"},
    ]
    answers = [stoker.login(**each) for each in wrong]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.raw for answer in answers}) == 1
