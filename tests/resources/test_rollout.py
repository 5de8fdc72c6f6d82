"""Groups of deployments in careful batches: canaries, health, failures that are tolerated or gone back from."""

from __future__ import annotations

import pytest

from stoker.deployments.run_end import DEADLINE
from stoker.model.errors import StackValidationFailed
from stoker.resources.base import WAKE
from stoker.stacks.operations import Options
from stoker.store import deployments, runs
from support.templates import config, deployment_group, server, template


def fleet(policy, names="abcd", script="one"):
    """Deployments to the servers of that name, and a config that says whether they are well."""
    resources = {name: server(name) for name in "abcd"}
    resources["config"] = config(script)
    resources["health"] = config("check")
    servers = {name: {"get_resource": name} for name in names}
    resources["group"] = deployment_group(servers=servers, signal_transport="HEAT_SIGNAL")
    resources["group"]["update_policy"] = {"batch_create": policy, "rolling_update": policy}
    outputs = {"failed": {"value": {"get_attr": ["group", "failed_members"]}}}
    outputs["codes"] = {"value": {"get_attr": ["group", "deploy_status_codes"]}}
    return template(resources, outputs=outputs)


HEALTH = {"health_check": {"get_resource": "health"}}


def members(heat, stack):
    return heat.resources(heat.nested(stack, "group"))


def running(heat, stack):
    """Names of the members that are under way, and their deployments; not of those that are going."""
    by_id = {each.id: name for name, each in members(heat, stack).items()}
    return {by_id[each.resource_id]: each for each in heat.running() if each.resource_id in by_id}


def roll(heat, stack, *, failing=()):
    """Answer whoever runs, and say who ran together, with what."""
    turns = []
    while waiting := running(heat, stack):
        turns.append({name: heat.config_of(each).config for name, each in waiting.items()})
        for name, each in waiting.items():
            if running(heat, stack).get(name) == each:
                heat.report(each, deploy_status_code=int(name in failing))
    return turns


def names_of(turns):
    return ["".join(sorted(turn)) for turn in turns]


def run_counts(heat):
    with heat.store.read() as tx:
        return {each.resource_id: len(runs.list_all(tx, deployments.get(tx, each.id))) for each in heat.deployments()}


def test_health_is_checked_after_every_batch_of_every_update(heat):
    policy = {"max_batch_size": 3, **HEALTH}
    stack = heat.create(fleet(policy))
    checks = {f"{name}.health": "check" for name in "abc"}
    expected = [dict.fromkeys("abc", "one"), checks, {"d": "one"}, {"d.health": "check"}]
    assert roll(heat, stack) == expected
    stack = heat.settled(stack.id)
    assert str(stack.status) == "COMPLETE"
    assert set(heat.outputs(stack)["codes"]) == set("abcd")
    stack = heat.update(stack, fleet(policy, script="two"))
    assert names_of(roll(heat, stack)) == names_of(expected)
    assert set(run_counts(heat).values()) == {2}
    # Nothing changed, so nobody is asked how they are.
    assert names_of(roll(heat, heat.update(stack, fleet(policy, script="two")))) == []


def test_an_unhealthy_member_fails_the_group_before_the_next_batch(heat):
    stack = heat.create(fleet({"max_batch_size": 1, **HEALTH}))
    assert names_of(roll(heat, stack, failing={"b.health"})) == ["a", "a.health", "b", "b.health"]
    stack = heat.settled(stack.id)
    assert stack.reason.startswith("Resource CREATE failed: Error: resources.group.resources.b.health: Deployment to")
    assert list(heat.outputs(stack)["failed"]) == ["b"]
    # b did what it was to do: only its health is asked for again.
    assert names_of(roll(heat, heat.update(stack, fleet({"max_batch_size": 1, **HEALTH})))) == [
        "b.health",
        "c",
        "c.health",
        "d",
        "d.health",
    ]
    assert str(heat.settled(stack.id).status) == "COMPLETE"
    assert heat.outputs(stack)["failed"] == {}


def test_the_health_check_has_its_own_timeout(heat):
    stack = heat.create(fleet({"max_batch_size": 4, "health_timeout": 30, **HEALTH}))
    roll_on = running(heat, stack)
    assert heat.work.run(DEADLINE) == 0
    for each in roll_on.values():
        heat.report(each)
    assert set(running(heat, stack)) == {f"{name}.health" for name in "abcd"}
    assert heat.work.run(DEADLINE) == 4
    assert "health: Deployment to server failed: Timed out" in heat.settled(stack.id).reason


def test_failures_within_the_limit_are_tolerated_and_reported(heat):
    policy = {"max_batch_size": 2, "max_fail_percentage": 50}
    stack = heat.create(fleet(policy))
    assert names_of(roll(heat, stack, failing={"a", "c"})) == ["ab", "cd"]
    stack = heat.settled(stack.id)
    assert str(stack.status) == "COMPLETE"
    group = heat.resources(stack)["group"]
    assert group.reason == "2 of 4 members failed, which is tolerated: a, c"
    found = heat.outputs(stack)["failed"]
    assert set(found) == {"a", "c"}
    assert "non-zero status code: 1" in found["a"]
    assert {name: str(each.status) for name, each in members(heat, stack).items()} == {
        "a": "FAILED",
        "b": "COMPLETE",
        "c": "FAILED",
        "d": "COMPLETE",
    }
    # Once each: a later batch tries nobody again.
    assert set(run_counts(heat).values()) == {1}
    # The next change does, in batches.
    stack = heat.update(stack, fleet({**policy, "max_batch_size": 1}))
    assert names_of(roll(heat, stack)) == ["a", "c"]
    assert heat.outputs(heat.settled(stack.id))["failed"] == {}


def test_health_checks_do_not_repeat_a_tolerated_failure(heat):
    stack = heat.create(fleet({"max_batch_size": 2, "max_fail_percentage": 50, **HEALTH}, "ab"))
    assert names_of(roll(heat, stack, failing={"a"})) == ["ab", "b.health"]


def test_failures_beyond_the_limit_fail_the_group(heat):
    policy = {"max_batch_size": 2, "max_fail_percentage": 25}
    stack = heat.create(fleet(policy))
    assert names_of(roll(heat, stack, failing={"a", "b"})) == ["ab"]
    stack = heat.settled(stack.id)
    assert str(stack.status) == "FAILED"
    assert stack.reason.endswith("(2 of 4 members failed, 1 may)")
    assert set(heat.outputs(stack)["failed"]) == {"a", "b"}
    assert set(members(heat, stack)) == {"a", "b"}


def test_a_canary_goes_first_and_a_changed_batch_that_fails_is_rolled_back(heat):
    policy = {"canary": 1, "max_batch_size": 2, "on_failure": "ROLLBACK", **HEALTH}
    stack = heat.create(fleet(policy))
    assert names_of(roll(heat, stack)) == ["a", "a.health", "bc", "b.healthc.health", "d", "d.health"]
    stack = heat.update(stack, fleet(policy, script="two"))
    turns = roll(heat, stack, failing={"b.health"})
    assert turns == [
        {"a": "two"},
        {"a.health": "check"},
        {"b": "two", "c": "two"},
        {"b.health": "check", "c.health": "check"},
        {"b": "one", "c": "one"},
    ]
    stack = heat.settled(stack.id)
    assert str(stack.status) == "FAILED"
    assert "resources.group.resources.b.health: Deployment to server failed" in stack.reason
    assert stack.reason.endswith("; brought back to what it was before: b, c")
    # What stays of its health is why.
    assert set(members(heat, stack)) == {"a", "b", "c", "d", "a.health", "b.health", "d.health"}
    # The next update goes on where this one stopped.
    turns = roll(heat, heat.update(stack, fleet(policy, script="two")))
    assert names_of(turns) == ["b", "b.health", "cd", "c.healthd.health"]
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_members_that_cannot_be_rolled_back_are_reported(heat):
    policy = {"max_batch_size": 2, "on_failure": "ROLLBACK"}
    stack = heat.create(fleet(policy))
    roll(heat, stack)
    stack = heat.update(stack, fleet(policy, script="two"))
    assert names_of(roll(heat, stack, failing={"a"})) == ["ab", "ab"]
    assert heat.settled(stack.id).reason.endswith(
        "; brought back to what it was before: b; could not be brought back: a"
    )


def test_a_rollback_of_the_stack_accepts_a_rolled_back_batch(heat):
    policy = {"max_batch_size": 2, "on_failure": "ROLLBACK"}
    stack = heat.create(fleet(policy))
    roll(heat, stack)
    stack = heat.update(stack, fleet(policy, script="two"), options=Options(disable_rollback=False))
    turns = roll(heat, stack, failing={"c"})
    assert [set(turn.items()) for turn in turns[:3]] == [
        {("a", "two"), ("b", "two")},
        {("c", "two"), ("d", "two")},
        {("c", "one"), ("d", "one")},
    ]


def test_members_are_removed_once_no_rollback_is_possible(heat):
    policy = {"max_batch_size": 1, "on_failure": "ROLLBACK"}
    stack = heat.create(fleet(policy, "abc"))
    roll(heat, stack)
    stack = heat.update(stack, fleet(policy, "bcd", script="two"))
    roll(heat, stack, failing={"d"})
    assert set(members(heat, stack)) == {"a", "b", "c"}
    stack = heat.update(stack, fleet(policy, "bcd", script="two"))
    assert names_of(roll(heat, stack)) == ["d"]
    assert set(members(heat, stack)) == {"b", "c", "d"}
    assert str(heat.settled(stack.id).status) == "COMPLETE"


def test_a_new_update_may_begin_in_a_pause(heat):
    policy = {"max_batch_size": 2, "pause_time": 30, "max_fail_percentage": 50}
    stack = heat.create(fleet(policy))
    assert names_of(roll(heat, stack, failing={"a"})) == ["ab"]
    assert str(heat.settled(stack.id).status) == "IN_PROGRESS"
    stack = heat.update(stack, fleet(policy, script="two"))
    assert names_of(roll(heat, stack)) == ["ab"]
    heat.work.run(WAKE)
    assert names_of(roll(heat, stack)) == ["cd"]
    stack = heat.settled(stack.id)
    assert (str(stack.status), heat.outputs(stack)["failed"]) == ("COMPLETE", {})


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({"max_fail_percentage": 101}, ".max_fail_percentage: : 101 is out of range"),
        ({"canary": -1}, ".canary: : -1 is out of range"),
        ({"on_failure": "CRY"}, r'.on_failure: : "CRY" is not an allowed value \["FAIL", "ROLLBACK"\]'),
        ({"health_timeout": 5}, ".health_timeout: : a health_check is needed"),
        ({"min_in_service": 1}, ": : Unknown Property min_in_service"),
    ],
)
def test_an_invalid_update_policy_is_refused_with_its_path(heat, policy, problem):
    with pytest.raises(StackValidationFailed, match=r"resources\.group\.update_policy\.batch_create" + problem):
        heat.create(fleet(policy))


def test_a_member_cannot_have_the_name_of_a_health_check(heat):
    said = fleet(HEALTH, "ab")
    said["resources"]["group"]["properties"]["servers"]["a.health"] = {"get_resource": "c"}
    with pytest.raises(StackValidationFailed, match=r"'a\.health'"):
        heat.create(said)
