"""AWS::CloudFormation::Stack: nested stacks whose template a property names."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stoker.model.errors import Invalid
from stoker.model.stack import Status
from stoker.stacks.templates.prepare import Identity, StackRequest, prepare
from stoker.store import stacks
from stoker.types.planned_runs import Planner
from support.stacks import World, world
from support.templates import template

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
    identity = Identity(stack.id, stack.name, heat.project)
    resolved = prepare(heat.engine, StackRequest(template=_outer("a"), files={URL: INNER_AWS}), identity)
    with store.read() as tx:
        levels = Planner(tx, heat.engine, stack, resolved, exists=True).levels
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
