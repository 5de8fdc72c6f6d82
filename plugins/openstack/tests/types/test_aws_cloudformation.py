"""The types of CloudFormation: nested stacks whose template a property names, wait conditions, and their handles."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from stoker.model.errors import Invalid
from stoker.model.stack import Stack, Status
from stoker.store import stacks
from support.stacks import World, tell, world
from support.templates import define, template

INNER_AWS = """
AWSTemplateFormatVersion: 2010-09-09
Parameters: {Word: {Type: String}, Times: {Type: Number, Default: 1}}
Resources: {value: {Type: OS::Heat::Value, Properties: {value: {Ref: Word}}}}
Outputs: {Said: {Value: {"Fn::GetAtt": [value, value]}}}
"""
URL = "https://templates.example/inner.json"


def _outer(word: Any, **properties: Any) -> dict[str, Any]:
    nested = {"TemplateURL": URL, "Parameters": {"Word": word}, **properties}
    outputs = {
        "said": {"value": {"get_attr": ["nested", "Outputs.Said"]}},
        "ref": {"value": {"get_resource": "nested"}},
    }
    return template({"nested": {"type": "AWS::CloudFormation::Stack", "properties": nested}}, outputs=outputs)


def test_a_nested_stack_of_cloudformation_is_updated_with_its_template(store):
    heat = world(store)
    stack = heat.create(_outer("hello"), files={URL: INNER_AWS})
    id = heat.resources(stack)["nested"].physical_id
    assert heat.outputs(stack) == {"said": "hello", "ref": f"arn:openstack:heat::p:stacks/{_name(heat, id)}/{id}"}
    stack = heat.update(stack, _outer("bye", TimeoutInMinutes=5), files={URL: INNER_AWS})
    assert heat.outputs(stack)["said"] == "bye"
    other = INNER_AWS.replace("{Ref: Word}", "other")
    stack = heat.update(stack, _outer("bye", TimeoutInMinutes=5), files={URL: other})
    assert (heat.outputs(stack)["said"], heat.resources(stack)["nested"].physical_id) == ("other", id)
    unknown = template(
        {"nested": _outer("x")["resources"]["nested"]}, outputs={"o": {"value": {"get_attr": ["nested", "Said"]}}}
    )
    stack = heat.update(stack, unknown, files={URL: other})
    assert "Said" in heat.output_errors(stack)["o"]
    assert heat.delete(stack).status is Status.COMPLETE


def test_a_nested_stack_of_cloudformation_is_previewed_with_the_files_of_the_request(store):
    heat = world(store)
    stack = heat.create(template({}))
    levels, _ = heat.plan(stack, _outer("a"), {URL: INNER_AWS})
    assert [[change.name for change in level.changes] for level in levels] == [["nested"], ["value"]]


def _name(heat: World, id: str | None) -> str:
    with heat.store.read() as tx:
        return stacks.get(tx, str(id)).name


@pytest.mark.parametrize(
    ("properties", "files", "words"),
    [
        ({}, {}, f"TemplateURL: the template {URL} is not among the files of the stack: send its text in `files`"),
        ({"Parameters": {}}, {URL: INNER_AWS}, "Property Word not assigned"),
        ({"Parameters": {"Word": "a", "Wrod": "b"}}, {URL: INNER_AWS}, "Unknown Property Wrod"),
        ({}, {URL: "nonsense"}, URL),
        ({}, {URL: INNER_AWS.replace("OS::Heat::Value", "OS::Heat::Vlaue")}, "OS::Heat::Vlaue"),
    ],
)
def test_the_template_of_a_nested_stack_of_cloudformation_is_checked(store, properties, files, words):
    with pytest.raises(Invalid, match=re.escape(words)):
        world(store).create(_outer("a", **properties), files=files)


def waiting(count: int = 1, handle: str = "AWS::CloudFormation::WaitConditionHandle", **more: Any) -> dict[str, Any]:
    """Return a template of a wait condition with its handle."""
    properties = {"Handle": {"get_resource": "handle"}, "Timeout": "60", "Count": count, **more}
    return template(
        {"handle": {"type": handle}, "condition": define("AWS::CloudFormation::WaitCondition", **properties)},
        outputs={
            "data": {"value": {"get_attr": ["condition", "Data"]}},
            "url": {"value": {"get_resource": "handle"}},
        },
    )


def ended(status: str = "SUCCESS", id: str = "1", **more: Any) -> dict[str, Any]:
    """Return a signal."""
    return {"Status": status, "Reason": "why", "Data": "said", "UniqueId": id, **more}


def signal(heat: World, stack: Stack, details: dict[str, Any]) -> Stack:
    tell(heat, stack, "handle", **details)
    return heat.settled(stack.id)


def test_a_condition_waits_for_its_count_of_signals(heat):
    stack = heat.create(waiting(2))
    signal(heat, stack, ended())
    assert signal(heat, stack, ended()).status is Status.IN_PROGRESS  # a repeated id counts once
    assert signal(heat, stack, ended(id="2")).status is Status.COMPLETE
    outputs = heat.outputs(stack)
    assert json.loads(outputs["data"]) == {"1": "said", "2": "said"}
    assert outputs["url"].startswith("http://stoker.test/cfn/v1/waitcondition/arn%3Aopenstack")


def test_a_condition_fails_with_the_reason(heat):
    stack = signal(heat, heat.create(waiting()), ended("FAILURE"))
    assert (stack.status, "resources.condition: why" in stack.reason) == (Status.FAILED, True)


@pytest.mark.parametrize("details", [{}, {"status": "SUCCESS"}, ended("PERHAPS"), ended(More=1), {"Status": "SUCCESS"}])
def test_a_signal_needs_all_fields(heat, details):
    stack = heat.create(waiting())
    with pytest.raises(Invalid, match="signal"):
        signal(heat, stack, details)


def test_a_handle_of_another_stack_receives_no_signals(heat):
    other = heat.create(waiting(), name="other")
    stack = heat.create(waiting(Handle=heat.outputs(other)["url"]), name="s")
    signal(heat, other, ended())
    assert heat.states(stack)["condition"] == "CREATE_IN_PROGRESS"


def test_an_update_replaces_a_handle_that_asks_for_it(heat):
    renewed = waiting(handle="OS::Heat::UpdateWaitConditionHandle")
    stack = signal(heat, heat.create(renewed), ended())
    before = heat.outputs(stack)["url"]
    stack = heat.update(stack, renewed)
    assert heat.states(stack)["condition"].endswith("IN_PROGRESS")
    assert heat.outputs(stack)["url"] != before
    assert signal(heat, stack, ended()).status is Status.COMPLETE
