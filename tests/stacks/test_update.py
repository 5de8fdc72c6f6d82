"""Updating: what is kept, changed, replaced, added, deleted; retried, superseded, rolled back."""

from __future__ import annotations

import pytest

from stoker.model.errors import EntityNotFound, ImmutableParameterModified, NotSupported
from stoker.model.stack import Action
from stoker.stacks import export
from stoker.stacks.operations import Options
from stoker.store import configs
from support.stacks import tell
from support.templates import HANDLE, LIVE, config, define, deployment, server, template, wait

BASE = {"config": config(), "server": server(), "d": deployment()}


def complete(heat, resources, **more):
    return heat.complete(heat.create(template(resources, **more)))


def test_an_update_runs_only_what_has_changed(heat):
    def values(x):
        return {**BASE, "d": deployment(input_values={"x": x}), "e": deployment()}

    stack = complete(heat, values(1))
    before = heat.resources(stack)
    stack = heat.update(stack, template(values(1)))
    assert (stack.action, stack.status) == ("UPDATE", "COMPLETE")
    assert heat.resources(stack) == before

    stack = heat.update(stack, template(values(2)))
    assert heat.states(stack)["d"] == "UPDATE_IN_PROGRESS"
    assert heat.states(stack)["e"] == "CREATE_COMPLETE"


def test_a_changed_script_is_a_new_config_and_runs_again(heat):
    stack = complete(heat, BASE)
    before = heat.resources(stack)
    stack = heat.update(stack, template({**BASE, "config": config("#!/bin/sh\necho other")}))

    after = heat.resources(stack)
    assert heat.states(stack)["d"] == "UPDATE_IN_PROGRESS"
    assert after["config"].physical_id != before["config"].physical_id
    assert after["d"].physical_id == before["d"].physical_id
    assert [each.name for each in heat.leftovers(stack)] == ["config"]

    stack = heat.signal(stack, "d")
    assert (stack.action, stack.status) == ("UPDATE", "COMPLETE")
    assert heat.leftovers(stack) == []
    with heat.store.read() as tx, pytest.raises(EntityNotFound):
        configs.get(tx, before["config"].physical_id, "p")


@pytest.mark.parametrize(("first", "second"), ["ab", "ba"])
def test_a_dependency_that_an_update_adds_orders_the_deletion(heat, first, second):
    value = define("OS::Heat::Value", value=1)
    stack = heat.create(template({"a": value, "b": value}))
    stack = heat.update(stack, template({first: value, second: {**value, "depends_on": first}}))
    stack = heat.update(stack, template({}))
    gone = [name for name, state in heat.events(stack) if state == "DELETE_COMPLETE"]
    assert gone == [second, first]


@pytest.mark.parametrize("content", [None, config("no configs", group="component")])
@pytest.mark.parametrize("exists", [False, True])
def test_a_deployment_whose_config_a_client_deleted_or_spoilt_fails_with_a_reason(heat, exists, content):
    before = {**BASE, "config": content or config()}
    actions = ["CREATE", "UPDATE", "DELETE"]
    stack = complete(heat, {**before, **({"d": deployment(actions=actions)} if exists else {})})
    if content is None:
        id = heat.resources(stack)["config"].physical_id
        heat.store.write(lambda tx: configs.delete(tx, id))
    after = template({**before, "d": deployment(input_values={"a": 1}, actions=actions)})

    _, runs = heat.plan(stack, after)
    stack = heat.update(stack, after)

    assert [run.content for run in runs if run.action is not Action.DELETE] == [None] * len(runs)
    assert (stack.action, stack.status) == ("UPDATE", "FAILED")
    assert "could not be found" in stack.reason or "needs a map of configs" in stack.reason
    heat.plan(stack, template({}))
    assert heat.delete(stack) is not None


def test_a_new_update_supersedes_a_running_one(heat):
    stack = complete(heat, BASE)
    stack = heat.update(stack, template({**BASE, "config": config("two")}))
    (stale,) = heat.running()
    stack = heat.update(stack, template({**BASE, "config": config("three")}))
    server_id = heat.resources(stack)["server"].physical_id

    with pytest.raises(EntityNotFound):
        heat.report(stale)
    assert heat.entry(server_id)["config"] == "three"
    assert heat.signal(stack, "d").status == "COMPLETE"


def test_an_update_awaits_unchanged_runs_in_progress(heat):
    stack = heat.create(template(BASE))
    running = heat.to_run(heat.resources(stack)["server"].physical_id)
    stack = heat.update(stack, template({**BASE, "e": deployment(after=("d",))}))

    assert heat.to_run(heat.resources(stack)["server"].physical_id) == running
    stack = heat.signal(stack, "d")
    assert heat.states(stack)["e"] == "CREATE_IN_PROGRESS"
    assert heat.signal(stack, "e").status == "COMPLETE"


@pytest.mark.parametrize("moves", [False, True], ids=["an input changes", "the server changes"])
def test_a_deployment_that_has_to_be_replaced_after_its_step_began_to_wait_is_replaced(heat, moves):
    """The update waits for its RESUME, in order to change it in place. Meanwhile, a value changes that replaces it."""
    marked = config()
    marked["properties"]["inputs"] = [{"name": "x", "replace_on_change": True}]
    actions = ["CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME"]
    before = {
        **{"config": marked, "server": server(), "other": server("second"), "handle": HANDLE, "later": HANDLE},
        "wait": wait(),
        "d": deployment(actions=actions, input_values={"x": LIVE}),
    }
    added = {}
    if moves:
        before["d"]["properties"]["server"] = LIVE
        # the new deployment on the first server waits for the removal of the one that moves away
        added = {"late": wait("later"), "e": deployment(actions=actions, after=("late",))}
    stack = heat.create(template(before))
    first, second = (heat.resources(stack)[name].physical_id for name in ("server", "other"))
    tell(heat, stack, "handle", id="1", data=first)
    heat.signal(stack, "d")
    heat.visit(stack, Action.SUSPEND)
    heat.signal(stack, "d")
    assert heat.visit(stack, Action.RESUME).status == "IN_PROGRESS"

    heat.update(stack, template({**before, **added}))
    replaced = heat.resources(stack)["d"].id
    tell(heat, stack, "handle", id="1", data=second)
    if moves:
        tell(heat, stack, "later")
    heat.report_all()
    assert heat.settled(stack.id).status == "COMPLETE"
    assert heat.resources(stack)["d"].id != replaced
    assert heat.leftovers(stack) == []


def test_a_rollback_returns_to_the_resources_that_the_update_replaced_or_removed(heat):
    value = define("OS::Heat::RandomString", length=10)
    user = define("OS::Heat::Value", value={"get_attr": ["replaced", "value"]})
    before = complete(heat, {"replaced": value, "removed": value, "user": user})
    kept = heat.resources(before)
    failing = define("OS::Heat::TestResource", fail=True) | {"depends_on": "user"}
    longer = define("OS::Heat::RandomString", length=20)
    changed = template({"replaced": longer, "user": user, "failing": failing})
    stack = heat.update(before, changed, Options(disable_rollback=False))

    assert (stack.action, stack.status) == ("ROLLBACK", "COMPLETE")
    after = heat.resources(stack)
    assert {name: item.id for name, item in after.items()} == {name: item.id for name, item in kept.items()}
    assert after["removed"].data == kept["removed"].data
    assert after["user"].data == kept["user"].data
    assert heat.leftovers(stack) == []


@pytest.mark.parametrize("is_same_server", [False, True])
def test_a_rollback_runs_a_replaced_deployment_again_if_its_replacement_ran_on_the_same_server(heat, is_same_server):
    resources = {**BASE, "other": server("second")}
    before = complete(heat, {**resources, "d": deployment(signal_transport="CFN_SIGNAL")})
    kept = heat.resources(before)["d"]
    change = {"signal_transport": "HEAT_SIGNAL"} if is_same_server else {"server": "other"}
    changed = {**resources, "config": config("other"), "d": deployment(**{"signal_transport": "CFN_SIGNAL", **change})}
    stack = heat.update(before, template(changed), Options(disable_rollback=False))
    replacement = heat.resources(stack)["d"]
    assert replacement.id != kept.id
    stack = heat.signal(stack, "d", deploy_status_code=1)

    assert stack.action == "ROLLBACK"
    returned = heat.resources(stack)["d"]
    assert (returned.id == kept.id) is not is_same_server
    assert stack.status == ("IN_PROGRESS" if is_same_server else "COMPLETE")
    stack = heat.complete(stack)
    assert (stack.action, stack.status) == ("ROLLBACK", "COMPLETE")
    assert heat.leftovers(stack) == []
    assert [item.id for item in heat.deployments()] == [returned.physical_id]


def test_a_patch_keeps_omitted_parameters(heat):
    made = template(
        {"v": define("OS::Heat::Value", value=[{"get_param": "a"}, {"get_param": "b"}])},
        parameters={"a": {"type": "string", "default": "a"}, "b": {"type": "string", "default": "b"}},
        outputs={"v": {"value": {"get_attr": ["v", "value"]}}},
    )
    stack = heat.create(made, parameters={"a": "1", "b": "2"})
    stack = heat.change(stack, parameters={"b": "3"})
    assert heat.outputs(stack) == {"v": ["1", "3"]}

    stack = heat.change(stack, clear=("a",))
    assert heat.outputs(stack) == {"v": ["a", "3"]}


def test_an_immutable_parameter_cannot_change(heat):
    made = template({}, parameters={"a": {"type": "string", "immutable": True}})
    stack = heat.create(made, parameters={"a": "1"})
    with pytest.raises(ImmutableParameterModified):
        heat.update(stack, made, parameters={"a": "2"})
    assert heat.settled(stack.id) == stack


def test_a_deleted_stack_is_not_updated(heat):
    stack = heat.delete(heat.create(template({})))
    with pytest.raises(NotSupported):
        heat.update(stack, template({}))


def test_a_snapshot_changes_the_status_of_complete_resources_only(heat):
    resources = {"good": {"type": "OS::Heat::None"}, "bad": {"type": "OS::Heat::TestResource"}}
    resources["bad"]["properties"] = {"fail": True}
    stack = heat.create(template(resources))
    heat.store.write(lambda tx: export.take_snapshot(tx, heat.engine, stack.id, None))
    stack = heat.settled(stack.id)
    assert (stack.action, str(stack.status)) == ("SNAPSHOT", "COMPLETE")
    assert heat.states(stack) == {"good": "SNAPSHOT_COMPLETE", "bad": "CREATE_FAILED"}
    resources["bad"]["properties"] = {"fail": False}
    stack = heat.update(stack, template(resources))
    assert heat.states(stack) == {"good": "SNAPSHOT_COMPLETE", "bad": "CREATE_COMPLETE"}
