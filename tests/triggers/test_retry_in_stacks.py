"""A stack's own failed deployments, run again in place: by the stack, which goes on from there."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from stoker.deployments import service
from stoker.model.errors import ActionInProgress, Conflict
from stoker.model.stack import Action
from stoker.store import deployments, stacks
from support.templates import define, deployment_group, on

CONFIG = define("OS::Heat::SoftwareConfig", config="x", group="script")


def template(**resources):
    return {"heat_template_version": "2018-08-31", "resources": {"config": CONFIG, **resources}}


def of(fleet, server):
    (found,) = [each for each in fleet.world.deployments() if each.server_id == server.id]
    return found


def now(fleet, stack):
    found = fleet.world.read(stacks.get, stack.id)
    return f"{found.action}_{found.status}"


def test_the_stack_continues_with_the_dependents(fleet):
    first, second = fleet.servers(2)
    stack = fleet.world.create(template(a=on(first.id), b=on(second.id) | {"depends_on": "a"}))
    failed = of(fleet, first)
    with pytest.raises(Conflict, match="only what failed"):
        fleet.retry(failed)
    fleet.world.report(failed, deploy_status_code=1)
    assert now(fleet, stack) == "CREATE_FAILED"
    again = fleet.retry(failed)
    assert (again.id, again.status) == (failed.id, "IN_PROGRESS")
    assert again.config_id != failed.config_id
    fleet.world.report(again)
    fleet.world.report(of(fleet, second))
    assert now(fleet, stack) == "UPDATE_COMPLETE"
    assert fleet.world.states(stack) == dict.fromkeys("ab", "CREATE_COMPLETE") | {"config": "CREATE_COMPLETE"}


def test_impossible_retries_are_refused(fleet):
    first, second = fleet.servers(2)
    stack = fleet.world.create(template(a=on(first.id), b=on(second.id)))
    failed = of(fleet, first)
    fleet.world.report(failed, deploy_status_code=1)
    fleet.retry(failed)
    fleet.world.report(of(fleet, first), deploy_status_code=1)
    fleet.retry(of(fleet, first))
    fleet.do(service.cancel, of(fleet, second), "bob")
    with pytest.raises((Conflict, ActionInProgress)):
        fleet.retry(of(fleet, first))
    assert now(fleet, stack) == "UPDATE_FAILED"
    fleet.world.report(fleet.retry(of(fleet, second)))
    if of(fleet, first).status == "IN_PROGRESS":
        fleet.world.report(of(fleet, first))
    assert now(fleet, stack) == "UPDATE_COMPLETE"
    with pytest.raises(Conflict, match="only what failed"):
        fleet.retry(of(fleet, first))


def tolerating(servers, names=("batch_create",)):
    """A template with a group of which half of the members may fail."""
    policy = {"max_batch_size": 10, "max_fail_percentage": 50}
    group = deployment_group(servers={each.name: each.id for each in servers})
    return template(all=group | {"update_policy": dict.fromkeys(names, policy)})


@pytest.mark.parametrize("names", [("batch_create",), ("batch_create", "rolling_update")])
def test_a_tolerated_member_of_a_group_is_retried(fleet, names):
    servers = fleet.servers(3)
    stack = fleet.world.create(tolerating(servers, names=names))
    well, bad, other = (of(fleet, each) for each in servers)
    fleet.world.report(well)
    fleet.world.report(other)
    fleet.world.report(bad, deploy_status_code=1)
    assert (now(fleet, stack), fleet.world.states(stack)["all"]) == ("CREATE_COMPLETE", "CREATE_COMPLETE")
    again = fleet.retry(bad)
    assert (again.id, again.status) == (bad.id, "IN_PROGRESS")
    assert again.config_id != bad.config_id
    assert [of(fleet, each).config_id for each in (servers[0], servers[2])] == [well.config_id, other.config_id]
    fleet.world.report(again, deploy_status_code=1)
    assert now(fleet, stack) == "UPDATE_COMPLETE", "the failure is tolerated again"
    assert list(fleet.world.resources(stack)["all"].data["failed"]) == [servers[1].name]
    fleet.world.report(fleet.retry(bad))
    assert fleet.world.resources(stack)["all"].data["failed"] == {}
    assert now(fleet, stack) == "UPDATE_COMPLETE"
    assert [of(fleet, each).config_id for each in (servers[0], servers[2])] == [well.config_id, other.config_id]


def test_a_tolerated_member_in_a_nested_stack_is_retried(fleet):
    servers = fleet.servers(2)
    inner = {"inner.yaml": json.dumps(tolerating(servers))}
    stack = fleet.world.create(template(nested={"type": "inner.yaml"}), files=inner)
    good, bad = (of(fleet, each) for each in servers)
    fleet.world.report(good)
    fleet.world.report(bad, deploy_status_code=1)
    assert now(fleet, stack) == "CREATE_COMPLETE"
    again = fleet.retry(bad)
    assert again.status == "IN_PROGRESS"
    fleet.world.report(again)
    assert now(fleet, stack) == "UPDATE_COMPLETE"
    assert {each.status for each in fleet.world.resources(stack).values()} == {"COMPLETE"}


def test_a_remediation_that_failed_before_a_suspension_runs_again_in_place(fleet):
    (server,) = fleet.servers(1)
    stack = fleet.world.create(template(a=on(server.id)))
    fleet.world.report(of(fleet, server))
    failed = replace(of(fleet, server), status="FAILED")
    fleet.world.store.write(lambda tx: deployments.save(tx, failed))
    fleet.world.visit(stack, Action.SUSPEND)
    with pytest.raises(Conflict, match="suspend it again"):
        fleet.retry(failed)
    fleet.world.visit(stack, Action.RESUME)
    again = fleet.retry(failed)
    assert (again.id, again.status) == (failed.id, "IN_PROGRESS")
    fleet.world.report(again)
    assert fleet.world.states(stack)["a"] == "RESUME_COMPLETE"


def test_a_retry_that_would_run_nothing_is_refused(fleet):
    (server,) = fleet.servers(1)
    run = on(server.id, actions=["CREATE"])
    stack = fleet.world.create(template(a=run))
    failed = of(fleet, server)
    fleet.world.report(failed, deploy_status_code=1)
    without = json.loads(json.dumps(template(a=run)))
    without["resources"]["a"]["properties"]["actions"] = ["DELETE"]
    changed = replace(fleet.world.read(stacks.source, stack.id), template=without)
    fleet.world.store.write(lambda tx: stacks.set_source(tx, stack.id, changed))
    with pytest.raises(Conflict, match=r"would not run the deployment .* again"):
        fleet.retry(of(fleet, server))
    assert now(fleet, stack) == "CREATE_FAILED"
