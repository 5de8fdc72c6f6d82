"""What an environment and a template may say of single resources: breakpoints, restrictions, things of others."""

from __future__ import annotations

import pytest

from stoker.model.errors import EntityNotFound, InvalidBreakPointHook, StokerError
from stoker.model.stack import Action
from stoker.stacks import signals
from stoker.stacks.engine.session import StackSession, all_attributes
from stoker.store import configs, stacks
from support.templates import chain, config, define, deployment, server, template


def said(name, **controls):
    return {"resource_registry": {"resources": {name: controls}}}


def value(of="v", **more):
    return define("OS::Heat::Value", value=of) | more


def clear(heat, stack, name, hook):
    heat.store.write(lambda tx: signals.unset_hook(tx, heat.engine, stack, name, hook))
    return heat.settled(stack.id)


PAIR = template({"a": value(), "b": value(depends_on=["a"])})


def test_a_breakpoint_before_a_create_holds_the_resource(heat):
    stack = heat.create(PAIR, environment=said("b", hooks="pre-create"))
    assert heat.states(stack) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    assert str(stack.status) == "IN_PROGRESS"
    with pytest.raises(InvalidBreakPointHook, match='"post-create" hook is not defined'):
        clear(heat, stack, "b", "post-create")
    assert (
        str(heat.delete(heat.create(PAIR, "deleted", environment=said("b", hooks="pre-create"))).status) == "COMPLETE"
    )
    stack = clear(heat, stack, "b", "pre-create")
    assert (str(stack.status), heat.states(stack)["b"]) == ("COMPLETE", "CREATE_COMPLETE")
    with pytest.raises(InvalidBreakPointHook):
        clear(heat, stack, "b", "pre-create")
    with pytest.raises(EntityNotFound):
        clear(heat, stack, "nobody", "pre-create")


def test_a_breakpoint_after_a_create_holds_the_dependents(heat):
    stack = heat.create(PAIR, environment=said("*", hooks=["post-create"]))
    assert heat.states(stack) == {"a": "CREATE_COMPLETE", "b": "INIT_COMPLETE"}
    stack = clear(heat, stack, "a", "post-create")
    assert (str(stack.status), heat.states(stack)["b"]) == ("IN_PROGRESS", "CREATE_COMPLETE")
    assert str(clear(heat, stack, "b", "post-create").status) == "COMPLETE"

    runs = heat.create(chain(2), "runs", environment=said("d0", hooks="post-create"))
    heat.signal(runs, "d0")
    assert heat.states(runs)["d1"] == "INIT_COMPLETE"
    clear(heat, runs, "d0", "post-create")
    assert heat.states(runs)["d1"] == "CREATE_IN_PROGRESS"


def test_breakpoints_hold_updates_and_deletes(heat):
    hooks = said("a", hooks=["pre-update", "post-update", "pre-delete", "post-delete"])
    stack = heat.create(template({"a": value("old")}), environment=hooks)
    assert str(stack.status) == "COMPLETE"
    stack = heat.update(stack, template({"a": value("new")}), environment=hooks)
    assert heat.resources(stack)["a"].properties["value"] == "old"
    stack = clear(heat, stack, "a", "pre-update")
    assert (heat.resources(stack)["a"].properties["value"], str(stack.status)) == ("new", "IN_PROGRESS")
    stack = clear(heat, stack, "a", "post-update")
    assert str(stack.status) == "COMPLETE"
    stack = heat.delete(stack)
    assert (stack.action, str(stack.status)) == (Action.DELETE, "IN_PROGRESS")
    stack = clear(heat, stack, "a", "pre-delete")
    assert (str(stack.status), heat.states(stack)) == ("IN_PROGRESS", {"a": "DELETE_COMPLETE"})
    stack = clear(heat, stack, "a", "post-delete")
    assert (str(stack.status), heat.resources(stack)) == ("COMPLETE", {})


def test_a_breakpoint_before_an_update_does_not_hold_new_resources(heat):
    stack = heat.create(template({}))
    stack = heat.update(stack, PAIR, environment=said("a", hooks="pre-create"))
    assert str(stack.status) == "COMPLETE"


def test_controls_reach_into_nested_stacks(heat):
    outer = template({"in": {"type": "inner.yaml"}})
    inner = "heat_template_version: 2018-08-31\nresources: {a: {type: OS::Heat::Value, properties: {value: 1}}}\n"
    environment = {"resource_registry": {"resources": {"in": {"a": {"hooks": "pre-create"}}}}}
    stack = heat.create(outer, files={"inner.yaml": inner}, environment=environment)
    assert heat.states(stack) == {"in": "CREATE_IN_PROGRESS"}
    nested = heat.settled(heat.resources(stack)["in"].physical_id)
    clear(heat, nested, "a", "pre-create")
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_an_external_resource_is_used_and_not_changed(heat):
    first = heat.create(template({"config": config(outputs=("result",))}), name="first")
    id = heat.resources(first)["config"].physical_id
    taken = {**config(), "external_id": id}
    said = template({"config": taken, "server": server(), "run": deployment(signal_transport="NO_SIGNAL")})
    stack = heat.create(said)
    assert heat.states(stack)["config"] == "CHECK_COMPLETE"
    assert heat.resources(stack)["config"].physical_id == id
    assert str(heat.update(stack, said).status) == "COMPLETE"
    heat.delete(stack)
    assert heat.read(configs.exists, id, "p")


def test_another_external_id_is_refused(heat):
    first = heat.create(template({"a": config(), "b": config()}), name="first")
    a, b = (heat.resources(first)[name].physical_id for name in "ab")
    stack = heat.create(template({"config": {**config(), "external_id": a}}))
    stack = heat.update(stack, template({"config": {**config(), "external_id": b}}))
    assert stack.reason.startswith(
        "Resource UPDATE failed: NotSupported: resources.config: Update to property external_id"
    )
    gone = heat.create(template({"config": {**config(), "external_id": "gone"}}), name="gone")
    assert "EntityNotFound: resources.config" in gone.reason
    with pytest.raises(StokerError, match="depends on nothing"):
        heat.create(template({"a": value(), "b": {**config(), "external_id": a, "depends_on": "a"}}), name="x")


@pytest.mark.parametrize(
    ("restricted", "change", "admitted"),
    [
        ("update", value("new"), {"type": "OS::Heat::None"}),
        ("replace", {"type": "OS::Heat::None"}, value("new")),
    ],
)
def test_a_resource_whose_action_is_restricted_stays_unchanged(heat, restricted, change, admitted):
    environment = said("a", restricted_actions=restricted)
    stack = heat.create(PAIR, environment=environment)
    refused = template({"a": change, "b": value(depends_on=["a"])})
    stack = heat.update(stack, refused, environment=environment)
    assert stack.reason == (
        f"Resource UPDATE failed: ResourceActionRestricted: resources.a: {restricted} is restricted for resource."
    )
    assert heat.states(stack) == {"a": "CREATE_COMPLETE", "b": "CREATE_COMPLETE"}
    assert heat.resources(stack)["a"].properties["value"] == "v"
    assert ("a", "UPDATE_FAILED") in heat.events(stack)
    stack = heat.update(stack, PAIR)
    assert (str(stack.status), heat.events(stack)[-1][1]) == ("COMPLETE", "UPDATE_COMPLETE")
    assert ("a", "UPDATE_IN_PROGRESS") not in heat.events(stack)
    stack = heat.update(stack, template({"a": admitted}), environment=environment)
    assert (str(stack.status), heat.resources(stack)["a"].type) == ("COMPLETE", admitted["type"])
    assert heat.leftovers(stack) == []


def test_a_breakpoint_before_an_update_also_holds_unchanged_resources(heat):
    stack = heat.create(PAIR)
    hooks = said("a", hooks=["pre-update", "post-update"])
    stack = heat.update(stack, PAIR, environment=hooks)
    assert (str(stack.status), heat.states(stack)["a"]) == ("IN_PROGRESS", "CREATE_COMPLETE")
    stack = clear(heat, stack, "a", "pre-update")
    # Nothing was done to it that could be stopped after.
    assert (str(stack.status), heat.states(stack)["a"]) == ("COMPLETE", "CREATE_COMPLETE")
    assert heat.resources(stack)["a"].hook is None


def test_a_view_of_a_deployment_has_its_outputs_before_and_after_the_result(heat):
    stack = heat.create(
        template({"config": config(outputs=("result", "other")), "server": server(), "run": deployment()})
    )

    def view():
        with heat.store.read() as tx:
            session = StackSession(tx, heat.engine, stacks.get(tx, stack.id))
            return all_attributes(session, heat.resources(stack)["run"])

    streams = ("deploy_stdout", "deploy_stderr", "deploy_status_code")
    assert view() == dict.fromkeys([*streams, "result", "other"])
    heat.signal(stack, "run", deploy_status_code=0, result="r", undeclared=1)
    assert view() == {**view(), "result": "r", "other": None}
