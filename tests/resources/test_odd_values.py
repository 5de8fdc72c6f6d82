"""Values that came past a type's schema once and ended as crashes: each is an answer or a failure with a reason now."""

from __future__ import annotations

import email
import json
from typing import Any

import pytest

from stoker.deployments.configs import new_config
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.stack import Action
from support.databases import alternate
from support.templates import HANDLE, define, template, wait

pytestmark = pytest.mark.slow
#: Refused before anything is stored.
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def told(properties: Any, kind: str, **more: Any) -> dict[str, Any]:
    """A resource whose properties another one tells, so that nothing is known of them beforehand."""
    config = define("OS::Heat::SoftwareConfig", outputs=[{"name": "x"}])
    teller = {"config": {"get_resource": "c"}, "server": "told", "actions": ["CREATE"]}
    return template(
        {
            "c": config,
            "d": define("OS::Heat::SoftwareDeployment", **teller),
            "r": define(f"OS::Heat::{kind}", **properties) | more,
        }
    )


ALL = {"get_attr": ["d", "x"]}


@pytest.mark.parametrize(
    ("kind", "x", "reason", "database_url"),
    alternate(
        [
            ("Delay", {"min_wait": 1e300}, "out of range"),
            ("Delay", {"min_wait": "nan"}, "not a number"),
            ("Delay", {"max_jitter": 10**6, "jitter_multiplier": 10**6}, "no longer than"),
            ("Delay", [], "properties: Value must be a map, not a list"),
            ("None", [], "properties: Value must be a map, not a list"),
            ("TestResource", {"wait_secs": 10**20}, "out of range"),
            ("TestResource", {"fail": "perhaps"}, '"perhaps" is not a valid boolean'),
            ("TestResource", {"action_wait_secs": {"create": 10**20}}, "action_wait_secs.create"),
            ("SoftwareDeployment", {"server": "s", "timeout": 10**20}, "properties.timeout"),
            ("SoftwareDeployment", {"server": "s", "signal_transport": "PIGEON"}, "'PIGEON' is not an allowed value"),
            ("SoftwareDeployment", {"server": "s" * 100}, "at most 36 characters"),
            ("SoftwareDeployment", {"server": "s", "name": "n" * 300}, "at most 255 characters"),
            ("DeployedServer", {"name": "a\0b"}, "without NUL"),
            ("DeployedServer", {"software_config_transport": "PIGEON"}, "'PIGEON' is not an allowed value"),
            ("RandomString", {"character_sequences": [{"sequence": ""}]}, "at least one character"),
            ("RandomString", {"length": 1, "character_classes": [{"min": 5}]}, "cannot be smaller"),
            ("CloudConfig", {"a\0b": 1}, "Unknown Property ab"),
            ("CloudConfig", {"cloud_config": "[" * 5000}, "must be a map"),
            ("CloudConfig", {"cloud_config": '{"a": NaN}'}, "must be a map"),
            ("CloudConfig", {"cloud_config": '{"a": "\\ud800"}'}, "must be a map"),
            ("MultipartMime", {"parts": [{"config": "a", "subtype": "x\nX: y"}]}, "subtype"),
            ("MultipartMime", {"parts": [{"config": "a", "filename": "x\nX: y"}]}, "filename"),
            ("Value", {"type": "json", "value": "[" * 5000}, "value: Value must be valid JSON"),
            ("Value", {"type": "json", "value": '"\\ud800"'}, "value: Value must be valid JSON"),
            ("Value", {"type": "number", "value": "inf"}, "is not a number"),
            ("ResourceGroup", {"count": 10**12, "resource_def": {"type": "OS::Heat::None"}}, "properties.count"),
            ("ResourceGroup", {"index_var": "", "resource_def": {"type": "OS::Heat::None"}}, "index_var"),
        ]
    ),
    indirect=["database_url"],
)
def test_values_of_other_resources_are_checked_when_they_are_known(heat, kind, x, reason):
    stack = heat.create(told(ALL, kind))
    stack = heat.signal(stack, "d", x=x)
    assert heat.states(stack)["r"] == "CREATE_FAILED"
    assert "resources.r: " in stack.reason
    assert reason in stack.reason
    for action in (Action.SUSPEND, Action.RESUME, Action.CHECK):
        heat.visit(stack, action)
        heat.complete(stack)
    assert heat.delete(stack).deleted_at is not None


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"properties": {"get_param": "p"}}, r"resources\.r\.properties: : Value must be a map, not a list"),
        ({"metadata": {"get_param": "p"}}, r"resources\.r\.metadata: Value must be a map, not a list"),
        ({"update_policy": {"get_param": "p"}}, r"resources\.r\.update_policy: Value must be a map, not a list"),
    ],
)
@pytest.mark.parametrize("kind", ["OS::Heat::TestResource", "OS::Heat::None"])
@ON_SQLITE
def test_sections_that_a_parameter_makes_invalid_are_refused(heat, more, sentence, kind):
    parameters = {"p": {"type": "json", "default": [1]}}
    with pytest.raises(StackValidationFailed, match=sentence):
        heat.create(template({"r": {"type": kind, **more}}, parameters=parameters))


@pytest.mark.parametrize(
    ("policy", "database_url"),
    alternate([5, "x", [1], {"pause_time": 1e300}, {"pause_time": "inf"}, {"max_batch_size": 0}]),
    indirect=["database_url"],
)
@pytest.mark.parametrize("name", ["batch_create", "rolling_update"])
def test_an_invalid_update_policy_is_refused_or_fails_its_group_when_known(heat, policy, name):
    group = define("OS::Heat::ResourceGroup", resource_def={"type": "OS::Heat::None"}, count=2)
    with pytest.raises(StackValidationFailed, match=rf"resources\.r\.update_policy\.{name}"):
        heat.create(template({"r": {**group, "update_policy": {name: policy}}}))

    value = define("OS::Heat::Value", value=policy)
    said = {**group, "update_policy": {name: {"get_attr": ["v", "value"]}}}
    stack = heat.create(template({"r": group, "v": value}))
    if name == "batch_create":
        stack = heat.create(template({"r": said, "v": value}), name="t")
    else:
        said["properties"] = {**group["properties"], "count": 3}
        stack = heat.update(stack, template({"r": said, "v": value}))
    assert f"update_policy.{name}" in stack.reason
    assert stack.status == "FAILED"


def test_metadata_of_a_handle_is_not_a_signal(heat):
    stack = heat.create(
        template(
            {
                "h": {**HANDLE, "metadata": {"a": 1, "b": {"status": "FAILURE"}}},
                "r": wait("h"),
            },
            outputs={"data": {"value": {"get_attr": ["r", "data"]}}},
        )
    )
    assert heat.states(stack)["r"] == "CREATE_IN_PROGRESS"
    assert heat.outputs(stack) == {"data": "{}"}


def test_a_wait_condition_that_never_began_can_be_shown(heat):
    stack = heat.create({**told(ALL, "WaitCondition"), "outputs": {"data": {"value": {"get_attr": ["r", "data"]}}}})
    stack = heat.signal(stack, "d", x=[])
    assert heat.outputs(stack) == {"data": "{}"}


def test_an_invalid_component_fails_its_deployment(heat):
    for config in ("text", ["x"], {"configs": [5]}, {"configs": [{"actions": 5}]}, {"configs": 5}, None):
        made, _ = heat.store.write(
            lambda tx, config=config: new_config(tx, heat.project, group="component", config=config)
        )
        deployment = define("OS::Heat::SoftwareDeployment", config=made.id, server="s")
        stack = heat.create(template({"r": deployment}), name=f"s{made.id}")
        assert 'resources.r: a config of the group "component" needs' in stack.reason
        assert heat.delete(stack).deleted_at is not None


def test_an_external_component_may_be_any_config(heat):
    made, _ = heat.store.write(lambda tx: new_config(tx, heat.project, config="text"))
    component = define("OS::Heat::SoftwareComponent", configs=[{"tool": "script"}]) | {"external_id": made.id}
    stack = heat.create(
        template({"r": component}, outputs={"configs": {"value": {"get_attr": ["r", "configs"]}}}),
    )
    assert heat.outputs(stack) == {"configs": None}


def test_a_structured_config_is_json_in_a_message(heat):
    part = {"config": {"get_resource": "c"}}
    stack = heat.create(
        template(
            {
                "c": define("OS::Heat::StructuredConfig", config={"a": [1]}),
                "r": define(
                    "OS::Heat::MultipartMime",
                    parts=[part, {**part, "type": "multipart"}, {"config": "x", "filename": "/"}],
                ),
            },
            outputs={"config": {"value": {"get_attr": ["r", "config"]}}},
        )
    )
    assert stack.status == "COMPLETE", stack.reason
    parts = [each for each in email.message_from_string(heat.outputs(stack)["config"]).walk()][1:]
    assert [part.get_payload() for part in parts] == ['{"a":[1]}', "", "x"]  # the second is no message: it has no body
    assert [part.get_content_type() for part in parts] == ["text/plain"] * 3


def test_a_placeholder_of_a_nested_stack_may_be_anything(heat):
    """A map cannot be looked up; members are found by what it is as text."""
    inner = template({}, outputs={"OS::stack_id": {"value": {"a": 1}}})
    group = {"resource_def": {"type": "inner.yaml"}, "count": 2}
    files = {"inner.yaml": json.dumps(inner)}
    said = define("OS::Heat::ResourceGroup", **group)
    stack = heat.create(template({"r": said}), files=files)
    changed = {**said, "properties": {**group, "removal_policies": [{"resource_list": [["x"], {"a": 1}, None, 0]}]}}
    stack = heat.update(stack, template({"r": changed}), files=files)
    assert stack.status == "COMPLETE", stack.reason


@pytest.mark.parametrize(
    ("kind", "default", "problem"),
    [
        *(("Json", text, "Value must be valid JSON") for text in ("[" * 5000, "NaN", '"\\ud800"')),
        *(("Number", value, ".* is not a number") for value in ("nan", "inf", "1" * 5000, True, "x")),
    ],
)
@ON_SQLITE
def test_an_invalid_default_is_refused(heat, kind, default, problem):
    inputs = [{"name": "a", "type": kind, "default": default}]
    with pytest.raises(Invalid, match=rf"inputs\[0\]\.default: {problem}"):
        heat.create(template({"r": define("OS::Heat::SoftwareConfig", inputs=inputs)}))


LOOKS_LIKE_A_CALL = [
    {"get_param": "OS::stack_name"},
    {"get_attr": ["no", "such"]},
    {"get_resource": "no"},
    {"get_file": "here.txt"},
    {"if": [1, 2]},
    {"a": [{"if": [True, 1, 2]}], "b": {"repeat": "daily"}},
    {"Stoker::Data": {"get_param": "p"}},
    {"Ref": "x"},
]


@pytest.mark.parametrize(("data", "database_url"), alternate(LOOKS_LIKE_A_CALL), indirect=["database_url"])
def test_data_in_a_group_is_never_evaluated(heat, data):
    """The group's template is Stoker's own: what was a value where the group stands is no function inside of it."""
    value = define("OS::Heat::Value", value={"get_param": "p"}) | {"metadata": {"get_param": "p"}}
    resources = {
        "group": define("OS::Heat::ResourceGroup", resource_def=value, count=2),
        "chain": define(
            "OS::Heat::ResourceChain", resources=["OS::Heat::Value"], resource_properties={"value": {"get_param": "p"}}
        ),
        "runs": define(
            "OS::Heat::SoftwareDeploymentGroup",
            servers={"a": "s"},
            signal_transport="NO_SIGNAL",
            input_values={"x": {"get_param": "p"}},
        ),
    }
    outputs = {
        "group": {"value": {"get_attr": ["group", "value"]}},
        "chain": {"value": {"get_attr": ["chain", "attributes", "value"]}},
    }
    source = template(resources, parameters={"p": {"type": "json"}}, outputs=outputs)
    handed = {"parameters": {"p": data}, "files": {"here.txt": "text"}}
    stack = heat.create(source, **handed)
    assert stack.status == "COMPLETE", stack.reason
    assert heat.outputs(stack) == {"group": [data, data], "chain": {"0": data}}
    assert [each.input_values for each in heat.deployments()] == [{"x": data}]
    resources["group"]["properties"]["count"] = 3
    stack = heat.update(stack, source, **handed)
    assert heat.outputs(stack)["group"] == [data] * 3


def test_a_preview_reports_a_certain_failure(heat):
    """What another resource tells is known by then, and does not fit."""
    told_length = define("OS::Heat::RandomString", length={"get_attr": ["v", "value"]})
    value = {"v": define("OS::Heat::Value", value="long")}
    stack = heat.create(template(value))
    with pytest.raises(StackValidationFailed, match=r"resources\.r: .*properties\.length: .*long"):
        heat.plan(stack, template({**value, "r": told_length}))
