"""Triggers on servers that have policies: who they count as, what they are refused, and windows."""

from __future__ import annotations

import pytest

from stoker.deployments import runs
from stoker.deployments.run_end import DEADLINE
from stoker.model.audit import Outcome
from stoker.model.errors import DeploymentRefused
from stoker.store import audit, servers
from stoker.triggers import creation
from support import query
from support.fleet import COMPONENT
from support.templates import server, template


def govern(fleet, id, policy):
    fleet.world.store.write(lambda tx: servers.change(tx, id, policy=policy))


def log(fleet):
    return [each.decision for each in fleet.world.read(audit.list_all, "p")]


def test_a_trigger_counts_as_the_stack_of_its_source(fleet):
    resources = {"app": COMPONENT, "server": server()}
    resources["server"]["properties"]["deployment_policy"] = "STACK"
    stack = fleet.world.create(template(resources))
    id = fleet.world.resources(stack)["server"].physical_id
    other = fleet.world.create(template({"app": COMPONENT}), "other")

    own = fleet.trigger(stack=stack.id, resource="app", action="BACKUP", servers=[id])
    assert fleet.exact(own)["running"] == 1
    for said in ({"stack": other.id, "resource": "app"}, {"config_id": fleet.config()}):
        with pytest.raises(DeploymentRefused, match="Server machine takes no deployments") as refused:
            fleet.trigger(**said, action="BACKUP", servers=[id])
        assert (refused.value.decision.outcome, refused.value.decision.actor) == (Outcome.REFUSED, "ann")
    assert [each.outcome for each in log(fleet)] == [Outcome.ALLOWED]
    assert {each.actor for each in log(fleet)} == {"ann"}


def test_a_refusing_server_fails_alone(fleet):
    first, second, third = fleet.servers(3)
    govern(fleet, second.id, {"groups": ["puppet"]})
    trigger = fleet.trigger_on(first, second, third)
    for each in fleet.running(trigger):
        fleet.end(each)
    assert [each.status for each in fleet.targets(trigger)] == ["COMPLETE", "FAILED", "COMPLETE"]
    assert "runs no configs of the group script" in fleet.targets(trigger)[1].status_reason


@pytest.mark.parametrize("transport", ["STOKER_SIGNAL", "ZAQAR_SIGNAL", "TEMP_URL_SIGNAL"])
def test_a_refused_target_leaves_no_queue_or_container(fleet, transport):
    one, free = fleet.servers(2)
    govern(fleet, one.id, {"groups": []})

    def left():
        return [fleet.world.read(query.count, table) for table in ("containers", "queues")]

    fleet.trigger_on(free, signal_transport=transport)
    of_one = left()
    refused = fleet.trigger_on(one, free, signal_transport=transport)
    assert "runs no configs of the group script" in fleet.targets(refused)[0].status_reason
    assert left() == [2 * each for each in of_one]
    with pytest.raises(DeploymentRefused):
        fleet.trigger_on(one, signal_transport=transport)
    assert left() == [2 * each for each in of_one]


def test_each_server_waits_for_its_own_window(fleet, clock):
    early, late, free = fleet.servers(3)
    for each, hour in ((early, 1), (late, 3)):
        govern(fleet, each.id, {"maintenance_windows": [{"cron": f"0 {hour} * * *", "minutes": 30}]})
    trigger = fleet.trigger_on(early, late, free, timeout=60)

    def to_run():
        return [bool(fleet.world.to_run(each.id)) for each in (early, late, free)]

    assert to_run() == [False, False, True]
    assert fleet.world.work.kinds().count(DEADLINE) == 1
    assert fleet.exact(trigger)["running"] == 3
    fleet.end(fleet.running(trigger)[2])
    clock.until(fleet.world.work, "2026-05-02T01:00")
    assert to_run() == [True, False, False]
    fleet.end(fleet.running(trigger)[0])
    clock.until(fleet.world.work, "2026-05-02T03:00")
    assert to_run() == [False, True, False]
    (run,) = fleet.running(trigger)
    fleet.world.store.write(lambda tx: runs.heartbeat(tx, server_id=run.server_id, config_id=run.config_id))
    clock.until(fleet.world.work, "2026-05-02T03:02")
    assert fleet.exact(trigger)["failed"] == 1, "its time began when the agent started it in the window"
    assert fleet.now(trigger).status == "FAILED"


def test_a_held_run_can_be_cancelled(fleet, clock):
    (one,) = fleet.servers(1)
    govern(fleet, one.id, {"maintenance_windows": [{"cron": "0 1 * * *", "minutes": 30}]})
    trigger = fleet.trigger_on(one)
    assert fleet.cancel(trigger).status == "CANCELLED"
    clock.until(fleet.world.work, "2026-05-02T01:10")
    assert fleet.world.to_run(one.id) == []


@pytest.mark.parametrize("is_retry", [False, True])
def test_a_run_that_requires_a_window_fails_on_a_server_that_has_lost_it(fleet, clock, is_retry):
    one, two = fleet.servers(2)
    for each in (one, two):
        govern(fleet, each.id, {"maintenance_windows": [{"cron": "0 1 * * *", "minutes": 30}]})
    trigger = fleet.trigger_on(one, two, require_window=True, max_concurrent=1)
    if is_retry:
        fleet.cancel(trigger)
    govern(fleet, two.id, None)
    if is_retry:
        cancelled, engine = fleet.now(trigger), fleet.world.engine
        trigger = fleet.world.store.write(
            lambda tx: creation.retry(tx, engine, cancelled, only_failed=True, requested_by="ann")
        )
    clock.until(fleet.world.work, "2026-05-02T01:00")
    fleet.end(*fleet.running(trigger))
    waited, lost = fleet.targets(trigger)
    assert (waited.status, lost.status) == ("COMPLETE", "FAILED")
    assert lost.status_reason == f"require_window: server {two.name} has no maintenance window any more"
    assert fleet.world.to_run(two.id) == []
