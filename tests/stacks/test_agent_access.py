"""Steps whose agent needs a user wait for it as at a breakpoint, and begin again when it exists."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stoker.model.stack import Action, Status
from stoker.stacks import signals
from stoker.store import resources, stack_users
from support.stacks import Users, tell, world
from support.templates import LIVE, config, define, deployment, on, server, template, wait


@pytest.fixture
def users():
    return Users()


@pytest.fixture
def heat(store, users):
    return world(store, keystone_users=users)


HANDLE = define("OS::Heat::WaitConditionHandle", signal_transport="HEAT_SIGNAL")
ONE = template({"a": HANDLE})


def test_a_creation_waits_for_the_user_behind_its_breakpoint(heat, users):
    stack = heat.create(ONE, environment={"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}})
    assert users.requested == []
    heat.store.write(lambda tx: signals.unset_hook(tx, heat.engine, stack, "a", "pre-create"))
    assert heat.states(stack) == {"a": "INIT_COMPLETE"}
    assert "a user of the agent" in heat.resources(stack)["a"].reason
    users.settle(heat)
    assert heat.states(stack) == {"a": "CREATE_COMPLETE"}
    assert heat.settled(stack.id).status == "COMPLETE"


def test_a_refused_user_fails_the_resource(heat, users):
    stack = heat.create(ONE)
    users.settle(heat, "no rights")
    assert heat.states(stack) == {"a": "CREATE_FAILED"}
    assert "no rights" in heat.settled(stack.id).reason


def test_the_deletion_of_a_waiting_resource_drops_the_requested_user(heat, users):
    stack = heat.create(ONE)
    assert len(users.requested) == 1
    heat.delete(stack)
    assert users.requested == []
    assert heat.settled(stack.id).deleted_at is not None


def test_a_resume_waits_until_the_user_is_enabled(heat, users):
    stack = heat.create(ONE)
    users.settle(heat)
    heat.visit(stack, Action.SUSPEND)
    assert list(users.enabled.values()) == [False]
    heat.visit(stack, Action.RESUME)
    assert heat.states(stack) == {"a": "SUSPEND_COMPLETE"}
    users.settle(heat)
    assert heat.states(stack) == {"a": "RESUME_COMPLETE"}


def test_the_replacement_of_a_server_waits_for_its_own_user_once(heat, users):
    """The type finds out only in its update that it has to replace the server."""

    def server(script):
        properties = {
            "software_config_transport": "POLL_SERVER_HEAT",
            "agent": "os-collect-config",
            "user_data": script,
        }
        return template({"a": define("OS::Nova::Server", **properties)})

    stack = heat.create(server("one"))
    users.settle(heat)
    heat.started(stack)
    before = heat.resources(stack)["a"].id
    heat.update(stack, server("two"))
    heat.settled(stack.id)
    assert [before] != users.requested == [heat.resources(stack)["a"].id]
    users.settle(heat)
    assert users.requested == []
    heat.started(stack)
    assert heat.resources(stack)["a"].id != before
    assert heat.settled(stack.id).status == "COMPLETE"


@pytest.mark.parametrize(("status", "rests"), [("IN_PROGRESS", False), ("COMPLETE", True), ("FAILED", False)])
def test_a_user_rests_only_while_its_resource_is_suspended(heat, users, status, rests):
    stack = heat.create(ONE)
    users.settle(heat)
    handle = heat.resources(stack)["a"]

    def suspend(tx):
        resources.save_all(tx, [replace(handle, action=Action.SUSPEND, status=Status(status))])
        stack_users.set_enabled(tx, handle.id, "name", stack.id)
        stack_users.save(tx, replace(stack_users.find(tx, handle.id), user_id="u"))

    heat.store.write(suspend)
    assert heat.read(stack_users.of_user, "u").resting is rests


def test_an_update_that_supersedes_a_paused_creation_waits_for_the_user(heat, users):
    stack = heat.create(ONE, environment={"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}})
    assert heat.resources(stack)["a"].hook == "pre-create"
    heat.update(stack, ONE)
    assert heat.resources(stack)["a"].hook is None
    users.settle(heat)
    assert heat.states(stack) == {"a": "CREATE_COMPLETE"}
    assert heat.settled(stack.id).status == "COMPLETE"


def test_a_deployment_that_waits_for_its_user_does_not_need_it_once_another_removes_it(heat, users):
    """An update resumes the suspended deployment first. Meanwhile, a value changes that moves it to another server."""
    handle = define("OS::Heat::WaitConditionHandle", signal_transport="NO_SIGNAL")
    common = {"actions": ["CREATE", "DELETE"], "signal_transport": "HEAT_SIGNAL"}
    before = {
        **{"config": config(), "server": server(), "other": server("second"), "handle": handle, "later": handle},
        "wait": wait(),
        "d": on(LIVE, **common),
    }
    after = {**before, "late": wait("later"), "e": deployment(after=("late",), **common)}
    stack = heat.create(template(before))
    first, second = (heat.resources(stack)[name].physical_id for name in ("server", "other"))
    tell(heat, stack, "handle", id="1", data=first)
    users.settle(heat)
    heat.signal(stack, "d")
    heat.visit(stack, Action.SUSPEND)
    heat.update(heat.visit(stack, Action.RESUME), template(after))
    assert heat.states(stack)["d"] == "SUSPEND_COMPLETE"

    tell(heat, stack, "handle", id="1", data=second)
    tell(heat, stack, "later")
    (removal,) = heat.running()
    heat.report(removal)
    users.settle(heat)
    for name in ("d", "e"):
        stack = heat.signal(stack, name)
    assert stack.status == "COMPLETE"
    assert heat.leftovers(stack) == []
