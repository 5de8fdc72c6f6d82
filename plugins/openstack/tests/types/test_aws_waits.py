"""CloudFormation's wait conditions: handles with pre-signed URLs, and signals with all fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stoker.model.errors import Invalid
from stoker.model.stack import Stack, Status
from support.stacks import World, tell
from support.templates import define, template


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
