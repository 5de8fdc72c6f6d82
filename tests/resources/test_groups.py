"""Groups: members counted, named, read, removed, and changed in batches."""

from __future__ import annotations

import pytest

from stoker.model.errors import StackValidationFailed
from stoker.resources.base import WAKE
from support.templates import config, define, deployment_group, server, template


def group(count=2, kind="OS::Heat::Value", policy=None, wanted=None, **more):
    made = define(
        "OS::Heat::ResourceGroup",
        count=count,
        resource_def={"type": kind, "properties": wanted or {"value": "member %index%"}},
        **more,
    )
    return {**made, "update_policy": policy} if policy else made


def whole(said, **outputs):
    return template({"group": said}, outputs={name: {"value": value} for name, value in outputs.items()})


def members(heat, stack):
    return sorted(heat.resources(heat.nested(stack, "group")))


READ = {
    "refs_map": {"get_attr": ["group", "refs_map"]},
    "values": {"get_attr": ["group", "value"]},
    "by_name": {"get_attr": ["group", "attributes", "value"]},
    "first": {"get_attr": ["group", "resource.0.value"]},
    "second": {"get_attr": ["group", "resource.1", "value"]},
    "removed": {"get_attr": ["group", "removed_rsrc_list"]},
}


def test_members_and_their_attributes_are_readable(heat):
    stack = heat.create(whole(group(), **READ))
    assert (str(stack.status), members(heat, stack)) == ("COMPLETE", ["0", "1"])
    found = heat.outputs(stack)
    assert set(found["refs_map"]) == {"0", "1"}
    del found["refs_map"]
    assert found == {
        "values": ["member 0", "member 1"],
        "by_name": {"0": "member 0", "1": "member 1"},
        "first": "member 0",
        "second": "member 1",
        "removed": [],
    }


def test_a_group_grows_and_shrinks(heat):
    stack = heat.create(whole(group(1)))
    stack = heat.update(stack, whole(group(3)))
    assert members(heat, stack) == ["0", "1", "2"]
    stack = heat.update(stack, whole(group(0, kind="No::Such")))  # nobody needs the type
    assert (str(stack.status), members(heat, stack)) == ("COMPLETE", [])
    stack = heat.delete(stack)
    assert str(stack.status) == "COMPLETE"


def test_a_member_removed_by_name_is_never_recreated(heat):
    stack = heat.create(whole(group(3), **READ))
    stack = heat.update(stack, whole(group(2, removal_policies=[{"resource_list": ["1"]}]), **READ))
    assert members(heat, stack) == ["0", "2"]
    stack = heat.update(stack, whole(group(3), **READ))
    assert members(heat, stack) == ["0", "2", "3"]
    assert heat.outputs(stack)["removed"] == ["1"]
    stack = heat.update(stack, whole(group(3, removal_policies_mode="update"), **READ))
    assert members(heat, stack) == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            group(kind="No::Such"),
            r"The Resource Type \(No::Such\) could not be found. .*resources.group<nested_stack>.resources.0",
        ),
        (group(wanted={"color": 1}), "Unknown Property color"),
        (group(-1), "out of range"),
    ],
)
def test_an_invalid_member_is_refused(heat, said, sentence):
    with pytest.raises(StackValidationFailed, match=sentence):
        heat.create(whole(said))


def fleet(servers):
    resources = {name: server(name) for name in ("a", "b", "c")}
    resources["config"] = config(outputs=("result",))
    resources["group"] = deployment_group(
        servers={name: {"get_resource": name} for name in servers}, signal_transport="HEAT_SIGNAL"
    )
    said = {"results": {"get_attr": ["group", "result"]}, "texts": {"get_attr": ["group", "deploy_stdouts"]}}
    return template(resources, outputs={name: {"value": value} for name, value in said.items()})


def test_a_deployment_group_has_a_deployment_for_every_server(heat):
    stack = heat.create(fleet("ab"))
    assert len(heat.running()) == 2
    heat.report_all(deploy_stdout="out", result="done")
    stack = heat.settled(stack.id)
    assert str(stack.status) == "COMPLETE"
    assert heat.outputs(stack) == {"results": {"a": "done", "b": "done"}, "texts": {"a": "out", "b": "out"}}
    stack = heat.update(stack, fleet("bc"))
    [only] = heat.running()
    heat.report(only, result="new")
    assert heat.outputs(heat.settled(stack.id))["results"] == {"b": "done", "c": "new"}


def test_a_pause_separates_batches(heat):
    policy = {"batch_create": {"max_batch_size": 1, "pause_time": 30}}
    stack = heat.create(whole(group(2, policy=policy)))
    assert (str(stack.status), members(heat, stack)) == ("IN_PROGRESS", ["0"])
    heat.work.run(WAKE)
    stack = heat.settled(stack.id)
    assert (str(stack.status), members(heat, stack)) == ("COMPLETE", ["0", "1"])


@pytest.mark.parametrize(
    ("policy", "place"),
    [
        ({"batch_create": {"max_batch_size": 0}}, ".batch_create.max_batch_size: : 0 is out of range"),
        ({"rolling_update": {"color": 1}}, ".rolling_update: : Unknown Property color"),
        ({"rolling": {}}, ": : Unknown Property rolling"),
        ({"rolling_update": {"canary": 1}}, ".rolling_update: : Unknown Property canary"),
    ],
)
def test_an_invalid_update_policy_is_refused_with_its_path(heat, policy, place):
    with pytest.raises(StackValidationFailed, match=r"^Property error: : resources\.group\.update_policy" + place):
        heat.create(whole(group(1, policy=policy)))


def test_a_member_that_failed_at_once_can_be_retried_and_deleted(heat):
    said = fleet("ab")
    said["resources"]["group"]["properties"]["config"] = "no-such"
    stack = heat.create(said)
    assert str(stack.status) == "FAILED"
    assert heat.resources(stack)["group"].physical_id is not None
    stack = heat.update(stack, said)
    assert "The Software config (no-such) could not be found" in stack.reason
    nested = heat.nested(stack, "group")
    assert str(heat.delete(stack).status) == "COMPLETE"
    assert heat.settled(nested.id).deleted_at is not None


def test_a_resource_chain_creates_one_resource_after_another(heat):
    said = define("OS::Heat::ResourceChain", resources=["OS::Heat::Value"] * 3, resource_properties={"value": "v"})
    reads = {"all": {"get_attr": ["group", "attributes", "value"]}, "each": {"get_attr": ["group", "value"]}}
    stack = heat.create(whole(said, **reads))
    assert heat.outputs(stack) == {"all": {"0": "v", "1": "v", "2": "v"}, "each": ["v", "v", "v"]}
    assert {name: set(each.requires) for name, each in heat.resources(heat.nested(stack, "group")).items()} == {
        "0": set(),
        "1": {"0"},
        "2": {"1"},
    }


def test_members_may_be_excluded_at_the_creation(heat):
    stack = heat.create(whole(group(3, removal_policies=[{"resource_list": ["1", 3, "abc"]}]), **READ))
    assert list(heat.outputs(stack)["refs_map"]) == ["0", "2", "4"]
    assert heat.outputs(stack)["removed"] == ["1", "3", "abc"]
    again = {"removal_policies_mode": "update", "removal_policies": [{"resource_list": ["1", "nobody"]}]}
    stack = heat.update(stack, whole(group(3, **again), **READ))
    assert (list(heat.outputs(stack)["refs_map"]), heat.outputs(stack)["removed"]) == (["0", "2", "3"], ["1"])
