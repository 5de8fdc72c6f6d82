"""python-heatclient, as other programs use it, through every call it has for what Stoker speaks."""

from __future__ import annotations

import json
import re

import pytest
from heatclient import exc
from heatclient.client import Client

from support.templates import define, deployment, template

pytestmark = pytest.mark.filterwarnings("ignore")

VALUES = template(
    {
        "value": define("OS::Heat::Value", value={"get_param": "n"}),
        "random": {"type": "OS::Heat::RandomString"},
        "config": define("OS::Heat::SoftwareConfig", group="script", config="x"),
    },
    parameters={"n": {"type": "number", "default": 3, "constraints": [{"range": {"min": 1, "max": 5}}]}},
    outputs={
        "n": {"value": {"get_attr": ["value", "value"]}},
        "random": {"value": {"get_attr": ["random", "value"]}},
    },
)

DEPLOYED = template(
    {
        "config": define("OS::Heat::SoftwareConfig", group="script", config="x", outputs=[{"name": "result"}]),
        "server": define("OS::Heat::DeployedServer", software_config_transport="POLL_SERVER_HEAT"),
        "run": deployment(signal_transport="HEAT_SIGNAL"),
    },
    outputs={"result": {"value": {"get_attr": ["run", "result"]}}},
)


@pytest.fixture(scope="module")
def heat(session):
    return Client("1", session=session)


@pytest.fixture
def make(heat, request):
    """A stack of the test's own name, deleted in the end."""
    name = re.sub(r"[^\w-]", "-", f"hc-{request.node.name}")

    def do(template=VALUES, **more):
        return heat.stacks.create(stack_name=name, template=template, **more)["stack"]["id"]

    yield do
    for each in heat.stacks.list(filters={"name": name}):
        heat.stacks.delete(each.id)


def outputs(heat, id):
    return {each["output_key"]: each["output_value"] for each in heat.stacks.get(id).outputs}


def changes(heat, id, **more):
    found = heat.stacks.preview_update(id, **more)["resource_changes"]
    return {kind: sorted(each["resource_name"] for each in listed) for kind, listed in found.items() if listed}


def test_a_preview_creates_nothing(heat):
    found = heat.stacks.preview(stack_name="hc-never", template=VALUES, parameters={"n": 4})
    assert {each["resource_name"]: each["properties"].get("value") for each in found.resources} == {
        "value": 4,
        "random": None,
        "config": None,
    }
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.get("hc-never")


def test_a_preview_of_an_update_lists_the_changes(heat, make):
    id = make()
    other = {
        **VALUES,
        "resources": {
            "value": VALUES["resources"]["value"],
            "config": define("OS::Heat::SoftwareConfig", config="y"),
            "more": define("OS::Heat::Value", value={"get_resource": "config"}),
        },
        "outputs": {},
    }
    assert changes(heat, id, template=other, parameters={"n": 4}) == {
        "updated": ["value"],
        "replaced": ["config"],
        "added": ["more"],
        "deleted": ["random"],
    }
    assert outputs(heat, id)["n"] == 3
    assert changes(heat, id, existing=True) == {"unchanged": ["config", "random", "value"]}


@pytest.mark.parametrize(("act", "state"), [("suspend", "SUSPEND"), ("check", "CHECK")])
def test_actions_of_a_stack_run(heat, make, act, state):
    id = make()
    getattr(heat.actions, act)(id)
    assert heat.stacks.get(id).stack_status == f"{state}_COMPLETE"
    assert {each.resource_status for each in heat.resources.list(id)} == {f"{state}_COMPLETE"}


def test_a_suspended_stack_must_be_resumed_before_an_update(heat, make):
    id = make()
    heat.actions.suspend(id)
    with pytest.raises(exc.HTTPBadRequest, match="SUSPEND_COMPLETE"):
        heat.stacks.update(id, template=VALUES)
    heat.actions.resume(id)
    heat.stacks.update(id, template=VALUES)
    assert heat.stacks.get(id).stack_status == "UPDATE_COMPLETE"


def test_a_running_update_is_cancelled_with_and_without_rollback(heat, make):
    id = make(DEPLOYED)
    with pytest.raises(exc.HTTPBadRequest, match="CREATE_IN_PROGRESS"):
        heat.actions.cancel_update(id)
    heat.actions.cancel_without_rollback(id)
    stack = heat.stacks.get(id)
    assert (stack.stack_status, stack.stack_status_reason) == ("CREATE_FAILED", "User cancelled stack CREATE")
    assert heat.resources.get(id, "run").resource_status == "CREATE_FAILED"
    heat.stacks.update(id, existing=True)
    heat.resources.signal(id, "run", data={"result": "good"})
    assert outputs(heat, id) == {"result": "good"}
    changed = json.loads(json.dumps(DEPLOYED).replace('"config": "x"', '"config": "y"'))
    heat.stacks.update(id, template=changed)
    assert heat.stacks.get(id).stack_status == "UPDATE_IN_PROGRESS"
    heat.actions.cancel_update(id)
    assert heat.stacks.get(id).stack_status == "ROLLBACK_IN_PROGRESS"
    heat.resources.signal(id, "run", data={"result": "back"})
    assert heat.stacks.get(id).stack_status == "ROLLBACK_COMPLETE"
    assert heat.stacks.template(id) == DEPLOYED


def test_a_restore_returns_to_a_snapshot(heat, make):
    id = make()
    taken = heat.stacks.snapshot(id, name="before")
    assert (taken["status"], heat.stacks.get(id).stack_status) == ("COMPLETE", "SNAPSHOT_COMPLETE")
    heat.stacks.update(id, template=VALUES, parameters={"n": 5})
    assert outputs(heat, id)["n"] == 5
    assert [each["name"] for each in heat.stacks.snapshot_list(id)["snapshots"]] == ["before"]
    assert (
        heat.stacks.snapshot_show(id, taken["id"])["snapshot"]["data"]["resources"].keys() == VALUES["resources"].keys()
    )
    heat.stacks.restore(id, taken["id"])
    assert heat.stacks.get(id).stack_status == "RESTORE_COMPLETE"
    assert outputs(heat, id)["n"] == 3
    heat.stacks.snapshot_delete(id, taken["id"])
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.snapshot_show(id, taken["id"])


def test_an_abandoned_stack_can_be_adopted(heat, make):
    id = make(DEPLOYED)
    heat.resources.signal(id, "run", data={"result": "kept"})
    run = heat.resources.get(id, "run").physical_resource_id
    data = heat.stacks.abandon(id)
    assert heat.software_deployments.get(run).status == "COMPLETE"
    with pytest.raises(exc.HTTPNotFound):
        heat.stacks.get(data["name"])
    id = make(data["template"], adopt_stack_data=json.dumps(data))
    assert heat.stacks.get(id).stack_status == "ADOPT_COMPLETE"
    assert heat.resources.get(id, "run").physical_resource_id == run
    assert outputs(heat, id) == {"result": "kept"}
    assert heat.stacks.export(id)["resources"]["run"]["resource_id"] == run
    heat.stacks.delete(id)
    with pytest.raises(exc.HTTPNotFound):
        heat.software_deployments.get(run)


def test_a_resource_marked_unhealthy_is_replaced_by_the_next_update(heat, make):
    id = make()
    before = outputs(heat, id)["random"]
    heat.resources.mark_unhealthy(id, "random", True, "it looks guessed")
    found = heat.resources.get(id, "random")
    assert (found.resource_status, found.resource_status_reason) == ("CHECK_FAILED", "it looks guessed")
    heat.stacks.update(id, existing=True)
    assert outputs(heat, id)["random"] != before
    heat.resources.mark_unhealthy(id, "random", True, None)
    heat.resources.mark_unhealthy(id, "random", False, None)
    assert heat.resources.get(id, "random").resource_status == "CHECK_COMPLETE"


def test_nested_stacks_are_listed_up_to_a_depth(heat, make):
    id = make(
        template({"inner": {"type": "inner.yaml"}}),
        files={"inner.yaml": json.dumps(VALUES)},
    )
    assert [each.resource_name for each in heat.resources.list(id)] == ["inner"]
    found = {each.resource_name: each for each in heat.resources.list(id, nested_depth=2)}
    assert set(found) == {"inner", *VALUES["resources"]}
    assert found["value"].parent_resource == "inner"
    [nested] = [each["href"] for each in found["inner"].links if each["rel"] == "nested"]
    assert found["inner"].physical_resource_id in nested
    assert {each.resource_name for each in heat.events.list(id, nested_depth=1)} >= {"inner", "value"}
    with pytest.raises(exc.HTTPBadRequest, match="nested"):
        heat.stacks.delete(found["inner"].physical_resource_id)


def test_lists_are_filtered_by_tags_and_paged(heat, make):
    id = make(tags="blue,round")

    def ids(**filters):
        return [each.id for each in heat.stacks.list(filters=filters)]

    assert ids(tags="blue,round") == [id]
    assert ids(tags="blue,square") == []
    assert ids(tags_any="blue,square") == [id]
    assert id not in ids(not_tags="blue,round")
    assert id in ids(not_tags="blue,square")
    assert id not in ids(not_tags_any="blue,square")
    assert len(list(heat.stacks.list(limit=1))) >= 1


def test_hidden_tags_exclude_a_stack_from_lists(heat, make):
    id = make(tags="data-processing-cluster")
    assert id not in [each.id for each in heat.stacks.list()]
    assert id in [each.id for each in heat.stacks.list(show_hidden=True)]


def test_validate_lists_the_parameters_of_a_template(heat):
    found = heat.stacks.validate(template=VALUES)
    assert found["Parameters"]["n"] == {
        "Type": "Number",
        "Description": "",
        "NoEcho": "false",
        "Label": "n",
        "Default": 3,
        "MinValue": 1,
        "MaxValue": 5,
    }
    with pytest.raises(exc.HTTPBadRequest, match="No::Such"):
        heat.stacks.validate(template={**VALUES, "resources": {"a": {"type": "No::Such"}}, "outputs": {}})


def test_types_versions_and_functions_are_listed(heat):
    names = [each.resource_type for each in heat.resource_types.list()]
    assert "OS::Heat::SoftwareDeployment" in names
    shown = heat.resource_types.get("OS::Heat::SoftwareDeployment")
    assert shown["properties"]["server"]["required"] is True
    made = heat.resource_types.generate_template("OS::Heat::RandomString", "hot")
    heat.stacks.validate(template=made)
    assert "heat_template_version.2018-08-31" in [each.version for each in heat.template_versions.list()]
    assert "get_attr" in [each.functions for each in heat.template_versions.get("heat_template_version.rocky")]
    assert heat.build_info.build_info()["api"]["revision"]
    assert [each.status for each in heat.services.list()] == ["up"]


def test_configs_and_deployments_are_created_and_deleted(heat):
    config = heat.software_configs.create(name="hc", group="script", config="echo", outputs=[{"name": "o"}])
    assert heat.software_configs.get(config.id).config == "echo"
    assert config.id in [each.id for each in heat.software_configs.list()]
    server = "hc-some-server"
    made = heat.software_deployments.create(
        config_id=config.id, server_id=server, action="CREATE", status="IN_PROGRESS", input_values={"a": 1}
    )
    assert [each["id"] for each in heat.software_deployments.metadata(server)] == [config.id]
    assert [each.id for each in heat.software_deployments.list(server_id=server)] == [made.id]
    changed = heat.software_deployments.update(made.id, status="COMPLETE", output_values={"o": "x"})
    assert (changed.status, changed.output_values) == ("COMPLETE", {"o": "x"})
    with pytest.raises(exc.HTTPConflict):
        heat.software_configs.delete(config.id)
    heat.software_deployments.delete(made.id)
    heat.software_configs.delete(config.id)
    with pytest.raises(exc.HTTPNotFound):
        heat.software_configs.get(config.id)
