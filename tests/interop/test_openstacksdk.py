"""openstacksdk's orchestration proxy and its cloud layer."""

from __future__ import annotations

import json

import pytest
from openstack import exceptions

from support.templates import define, template

pytestmark = pytest.mark.filterwarnings("ignore")

TEMPLATE = template(
    {"value": define("OS::Heat::Value", value={"get_param": "n"})},
    parameters={"n": {"type": "number", "default": 3}},
    outputs={"n": {"value": {"get_attr": ["value", "value"]}}},
)


def test_a_stack_from_create_to_delete(cloud):
    heat = cloud.orchestration
    made = heat.create_stack(
        name="sdk", template=TEMPLATE, files={"a.txt": "text"}, environment={"parameters": {"n": 4}}
    )
    stack = heat.get_stack(made.id)
    assert (stack.status, stack.outputs[0]["output_value"]) == ("CREATE_COMPLETE", 4)
    assert heat.find_stack("sdk").id == made.id
    assert [each.name for each in heat.stacks(name="sdk")] == ["sdk"]
    assert [each.name for each in heat.resources(stack)] == ["value"]
    assert {each.resource_name for each in heat.stack_events(stack)} == {"sdk", "value"}
    assert heat.get_stack_template(stack).to_dict()["parameters"] == TEMPLATE["parameters"]
    assert heat.get_stack_environment(stack).parameters == {"n": 4}
    assert heat.get_stack_files(stack) == {"a.txt": "text"}
    heat.update_stack(stack, template=TEMPLATE, parameters={"n": 5})
    assert heat.get_stack(made.id).outputs[0]["output_value"] == 5
    previewed = heat.update_stack(stack, preview=True, template=TEMPLATE, parameters={"n": 6})
    assert previewed is not None
    heat.check_stack(stack)
    heat.suspend_stack(stack)
    assert heat.get_stack(made.id).status == "SUSPEND_COMPLETE"
    heat.resume_stack(stack)
    heat.delete_stack(stack)
    assert heat.find_stack("sdk", ignore_missing=True) is None
    with pytest.raises(exceptions.NotFoundException):
        heat.get_stack("sdk")


def test_openstacksdks_cloud_layer_waits_for_stacks(cloud, tmp_path):
    file = tmp_path / "t.yaml"
    file.write_text(json.dumps(TEMPLATE))
    made = cloud.create_stack("sdk-cloud", template_file=str(file), wait=True, n=2)
    assert made.status == "CREATE_COMPLETE"
    assert cloud.get_stack("sdk-cloud").outputs[0]["output_value"] == 2
    assert cloud.delete_stack("sdk-cloud", wait=True) is True


def test_openstacksdk_validates_a_template(cloud):
    found = cloud.orchestration.validate_template(TEMPLATE)
    assert found.parameters["n"]["Type"] == "Number"
    with pytest.raises(exceptions.BadRequestException, match="No::Such"):
        cloud.orchestration.validate_template({**TEMPLATE, "resources": {"a": {"type": "No::Such"}}, "outputs": {}})


def test_configs_and_deployments_are_created_and_deleted(cloud):
    heat = cloud.orchestration
    config = heat.create_software_config(name="sdk-c", group="script", config="echo", inputs=[{"name": "i"}])
    assert heat.get_software_config(config.id).inputs[0]["name"] == "i"
    assert config.id in [each.id for each in heat.software_configs()]
    made = heat.create_software_deployment(
        config_id=config.id, server_id="sdk-s", action="CREATE", status="IN_PROGRESS"
    )
    assert [each.id for each in heat.software_deployments(server_id="sdk-s")] == [made.id]
    changed = heat.update_software_deployment(made.id, status="COMPLETE", output_values={"x": 1})
    assert (changed.status, changed.output_values) == ("COMPLETE", {"x": 1})
    heat.delete_software_deployment(made.id)
    heat.delete_software_config(config.id)
