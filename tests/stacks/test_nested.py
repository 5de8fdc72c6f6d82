"""Stacks within stacks: templates as resource types."""

from __future__ import annotations

import json

import pytest

from stoker.model.errors import RequestLimitExceeded, StackValidationFailed
from stoker.model.stack import Action
from stoker.stacks import operations
from stoker.stacks.engine import DEADLINE
from support.stacks import needs_provider, world
from support.statements import recorded_statements
from support.templates import define, template

#: One deployment whose text and answer pass through parameters and outputs.
CHILD = """
heat_template_version: 2018-08-31
parameters:
  text: {type: string}
  words: {type: comma_delimited_list, default: [x]}
resources:
  conf:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: {get_param: text}, outputs: [{name: result}]}
  machine: {type: OS::Heat::DeployedServer, properties: {name: m}}
  run:
    type: OS::Heat::SoftwareDeployment
    properties: {config: {get_resource: conf}, server: {get_resource: machine}, signal_transport: HEAT_SIGNAL}
outputs:
  result: {value: {get_attr: [run, result]}}
  words: {value: {get_param: words}}
"""


def parent(**properties):
    inner = define("child.yaml", **{"text": "one", **properties})
    after = define("OS::Heat::Value", value={"get_attr": ["inner", "result"]})
    return template(
        {"inner": inner, "after": after},
        outputs={
            "result": {"value": {"get_attr": ["after", "value"]}},
            "words": {"value": {"get_attr": ["inner", "words"]}},
            "conf": {"value": {"get_attr": ["inner", "resource.conf", "config"]}},
        },
    )


FILES = {"child.yaml": CHILD}


def test_nested_stacks_share_one_reading_of_the_source_of_their_root(heat):
    inner = {"type": "inner.yaml"}
    with recorded_statements(heat.store) as statements:
        heat.create(
            template({f"n{number}": inner for number in range(9)}),
            files={"inner.yaml": "heat_template_version: 2018-08-31"},
        )
    assert sum(statement.startswith("SELECT stacks.source") for statement in statements) < 5


def create(heat, result="r", files=FILES, **properties):
    """A complete stack, and the stack in it."""
    stack = heat.create(parent(**properties), files=files)
    nested = heat.nested(stack, "inner")
    heat.signal(nested, "run", result=result)
    return heat.settled(stack.id), nested


def test_a_template_is_a_resource_type_with_its_outputs_as_attributes(heat):
    stack = heat.create(parent(words="a,b"), files=FILES)
    assert heat.states(stack) == {"inner": "CREATE_IN_PROGRESS", "after": "INIT_COMPLETE"}
    nested = heat.nested(stack, "inner")
    assert (nested.parent_id, nested.root_id, nested.depth) == (stack.id, stack.id, 1)
    heat.signal(nested, "run", result="brought back")
    stack = heat.settled(stack.id)
    assert heat.states(stack) == {"inner": "CREATE_COMPLETE", "after": "CREATE_COMPLETE"}
    assert str(stack.status) == "COMPLETE"
    assert heat.outputs(stack) == {"result": "brought back", "words": ["a", "b"], "conf": "one"}


def test_a_failure_in_a_nested_stack_names_the_whole_path(heat):
    stack = heat.create(parent(), files=FILES)
    heat.signal(heat.nested(stack, "inner"), "run", deploy_status_code=3)
    assert heat.settled(stack.id).reason == (
        "Resource CREATE failed: Error: resources.inner.resources.run: Deployment to server failed: "
        "deploy_status_code : Deployment exited with non-zero status code: 3 on m"
    )


@pytest.mark.parametrize("has_action", [False, True])
def test_a_delete_includes_and_awaits_nested_stacks(heat, has_action):
    actions = "actions: [CREATE, DELETE], signal_transport" if has_action else "signal_transport"
    stack, nested = create(heat, files={"child.yaml": CHILD.replace("signal_transport", actions)})
    stack = heat.delete(stack)
    if has_action:
        assert str(stack.status) == "IN_PROGRESS"
        (waiting,) = heat.deployments()
        heat.report(waiting)
    stack = heat.settled(stack.id)
    assert (stack.action, str(stack.status)) == (Action.DELETE, "COMPLETE")
    assert heat.settled(nested.id).deleted_at is not None
    assert heat.deployments() == []


def test_changed_properties_and_files_update_the_nested_stack(heat):
    stack, nested = create(heat, "first")
    stack = heat.update(stack, parent(), files=FILES)
    assert (str(stack.status), heat.nested(stack, "inner").action) == ("COMPLETE", Action.CREATE)
    other_group = {"child.yaml": CHILD.replace("group: script", "group: other")}
    for number, files in enumerate((FILES, other_group)):
        stack = heat.update(stack, parent(text="two"), files=files)
        assert (str(stack.status), heat.states(stack)["inner"]) == ("IN_PROGRESS", "UPDATE_IN_PROGRESS")
        assert (heat.nested(stack, "inner").id, heat.nested(stack, "inner").action) == (nested.id, Action.UPDATE)
        heat.signal(nested, "run", result=f"again {number}")
        stack = heat.settled(stack.id)
        assert (stack.action, str(stack.status)) == (Action.UPDATE, "COMPLETE")
        assert heat.outputs(stack)["result"] == f"again {number}"


def test_a_rollback_includes_nested_stacks(heat):
    stack, nested = create(heat, "good")
    stack = heat.update(stack, parent(text="bad"), options=operations.Options(disable_rollback=False), files=FILES)
    heat.signal(nested, "run", deploy_status_code=1)
    stack = heat.settled(stack.id)
    assert stack.action is Action.ROLLBACK
    heat.signal(nested, "run", result="good again")
    stack = heat.settled(stack.id)
    assert str(stack.status) == "COMPLETE"
    assert heat.outputs(stack)["conf"] == "one"


def test_a_recursive_template_ends_at_the_depth_limit(heat):
    said = {"me.yaml": "heat_template_version: 2018-08-31\nresources: {me: {type: me.yaml}}\n"}
    with pytest.raises(RequestLimitExceeded, match="Recursion depth exceeds 5"):
        heat.create(template({"me": {"type": "me.yaml"}}), files=said)
    shallow = world(heat.store, limits={"nested_depth": 1})
    inner = {"in.yaml": "heat_template_version: 2018-08-31"}
    with pytest.raises(RequestLimitExceeded, match="Recursion depth exceeds 1"):
        shallow.create(template({"in": {"type": "in.yaml"}}), files=inner)


def test_a_missing_file_is_named(heat):
    with pytest.raises(
        StackValidationFailed, match=r"The Resource Type \(child.yaml\) could not be found. .*inner.*no such file"
    ):
        heat.create(parent())


def test_the_timeout_of_the_parent_ends_nested_stacks(heat):
    stack = heat.create(parent(), files=FILES)
    nested = heat.nested(stack, "inner")
    heat.work.run(DEADLINE)
    assert heat.settled(stack.id).reason == "Timed out"
    assert str(heat.settled(nested.id).status) == "FAILED"
    assert [each.status for each in heat.deployments()] == ["FAILED"]


def test_suspend_and_resume_include_nested_stacks(heat):
    stack, nested = create(heat)
    stack = heat.visit(stack, Action.SUSPEND)
    assert (stack.action, str(stack.status)) == (Action.SUSPEND, "COMPLETE")
    assert heat.settled(nested.id).action is Action.SUSPEND
    stack = heat.visit(stack, Action.RESUME)
    assert (stack.action, str(stack.status)) == (Action.RESUME, "COMPLETE")
    assert set(heat.states(nested).values()) == {"RESUME_COMPLETE"}


@needs_provider
def test_a_nested_template_may_have_the_other_syntax(heat):
    inner = {
        "AWSTemplateFormatVersion": "2010-09-09",
        "Parameters": {"word": {"Type": "String"}},
        "Resources": {"value": {"Type": "OS::Heat::Value", "Properties": {"value": {"Ref": "AWS::StackName"}}}},
        "Outputs": {"name": {"Value": {"Fn::Join": ["-", [{"Ref": "word"}, {"Fn::GetAtt": ["value", "value"]}]]}}},
    }
    outer = template(
        {"inner": define("inner.yaml", word="a")},
        outputs={"name": {"value": {"get_attr": ["inner", "name"]}}},
    )
    stack = heat.create(outer, files={"inner.yaml": json.dumps(inner)})
    assert str(stack.status) == "COMPLETE", stack.reason
    assert heat.outputs(stack)["name"].startswith("a-s-inner-")


def test_resources_of_nested_stacks_count_in_the_limit(store):
    heat = world(store, limits={"resources_per_stack": 3})
    inner = json.dumps(template({"one": {"type": "OS::Heat::None"}, "two": {"type": "OS::Heat::None"}}))
    heat.create(template({"inner": {"type": "inner.yaml"}}), files={"inner.yaml": inner})
    with pytest.raises(RequestLimitExceeded, match="3 resources with all inside of it"):
        heat.create(
            template({"inner": {"type": "inner.yaml"}, "more": {"type": "OS::Heat::None"}}),
            name="t",
            files={"inner.yaml": inner},
        )


INSIDE = """
heat_template_version: 2018-08-31
resources:
  value: {type: OS::Heat::Value, properties: {value: 1}}
outputs:
"""


def test_a_reference_to_a_nested_stack_is_its_arn_or_its_output_stack_id(heat):
    plain, with_own = INSIDE + "  o: {value: 1}\n", INSIDE + "  OS::stack_id: {value: {get_resource: value}}\n"
    resources = {"plain": {"type": "plain.yaml"}, "own": {"type": "own.yaml"}}
    said = template(
        resources,
        outputs={
            "plain": {"value": {"get_resource": "plain"}},
            "own": {"value": {"get_resource": "own"}},
            "attribute": {"value": {"get_attr": ["own", "OS::stack_id"]}},
        },
    )
    stack = heat.create(said, files={"plain.yaml": plain, "own.yaml": with_own})
    inner, own = heat.nested(stack, "plain"), heat.nested(stack, "own")
    known = heat.resources(own)["value"].physical_id
    assert heat.outputs(stack) == {
        "plain": f"arn:openstack:heat::p:stacks/{inner.name}/{inner.id}",
        "own": known,
        "attribute": known,
    }


FACADE = """
heat_template_version: 2018-08-31
resources:
  value:
    type: OS::Heat::Value
    properties:
      value: [{resource_facade: metadata}, {resource_facade: deletion_policy}, {resource_facade: update_policy}]
outputs:
  value: {value: {get_attr: [value, value]}}
  metadata: {value: {resource_facade: metadata}}
"""


def test_a_nested_template_and_a_member_can_read_their_own_resource(heat):
    def outer(word):
        metadata = {"k": word, "v": {"get_attr": ["v", "value"]}}
        inner = {"type": "inner.yaml", "metadata": metadata, "deletion_policy": "Retain"}
        resources = {"v": define("OS::Heat::Value", value=5), "in": inner}
        return template(
            resources, outputs={name: {"value": {"get_attr": ["in", name]}} for name in ("value", "metadata")}
        )

    stack = heat.create(outer("one"), files={"inner.yaml": FACADE})
    assert str(stack.status) == "COMPLETE", stack.reason
    assert heat.outputs(stack) == {"value": [{"k": "one", "v": 5}, "Retain", {}], "metadata": {"k": "one", "v": 5}}
    stack = heat.update(stack, outer("two"), files={"inner.yaml": FACADE})
    assert heat.outputs(stack) == {"value": [{"k": "two", "v": 5}, "Retain", {}], "metadata": {"k": "two", "v": 5}}

    member = {"type": "inner.yaml", "metadata": {"m": 1}}
    group = define("OS::Heat::ResourceGroup", count=1, resource_def=member)
    outputs = {"o": {"value": {"get_attr": ["g", "metadata"]}}}
    stack = heat.create(template({"g": group}, outputs=outputs), "group", files={"inner.yaml": FACADE})
    assert heat.outputs(stack) == {"o": [{"m": 1}]}


def test_a_mapped_type_is_listed_with_the_name_in_the_template(heat):
    resources = {"a": {"type": "My::Thing"}, "b": {"type": "My::Other", "depends_on": "a"}}
    registry = {"My::Thing": "inner.yaml", "My::Other": "OS::Heat::None"}
    stack = heat.create(
        template(resources),
        files={"inner.yaml": INSIDE + "  o: {value: 1}\n"},
        environment={"resource_registry": registry},
    )
    assert {name: each.declared_type for name, each in heat.resources(stack).items()} == {
        "a": "My::Thing",
        "b": "My::Other",
    }
    assert {event.resource_type for event in heat.stored_events(stack)} == {"OS::Heat::Stack", "My::Thing", "My::Other"}


def test_errors_in_outputs_of_nested_stacks_are_errors_of_the_parents_outputs(heat):
    broken = "heat_template_version: 2015-10-15\noutputs:\n  wrong: {value: {get_param: foo}}\n"
    outer = template({"inner": {"type": "child.yaml"}}, outputs={"shown": {"value": {"get_attr": ["inner", "wrong"]}}})
    stack = heat.create(outer, files={"child.yaml": broken})
    assert heat.outputs(stack) == {"shown": None}
    assert heat.output_errors(stack)["shown"].startswith(
        "Error in inner output wrong: The Parameter (foo) was not provided."
    )
