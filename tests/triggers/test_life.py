"""The life of a trigger: counts, turns, failures, cancel, retry, delete."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from stoker.deployments import service
from stoker.model.deployment import WINDOW
from stoker.model.errors import Conflict, EntityNotFound
from stoker.store import configs, deployments, documents, targets, triggers
from stoker.triggers.lifecycle import SHARE
from support.statements import recorded_statements


def test_all_targets_run_at_once_and_succeed(fleet):
    trigger = fleet.trigger_over(3, config={"inputs": [{"name": "a"}]}, action="BACKUP", input_values={"a": 1})
    assert (trigger.status, trigger.name, trigger.total) == ("IN_PROGRESS", "job_BACKUP", 3)
    for each in fleet.running(trigger):
        assert (each.action, each.input_values, each.trigger_id) == ("BACKUP", {"a": 1}, trigger.id)
        assert (each.stack_id, each.resource_id, each.signal_transport) == (None, None, "STOKER_SIGNAL")
        fleet.end(each)
    assert fleet.exact(trigger)["complete"] == 3
    ended = fleet.now(trigger)
    assert (ended.status, ended.status_reason) == ("COMPLETE", "All 3 succeeded")


def test_at_most_max_concurrent_targets_run_in_order_and_continue_after_a_failure(fleet):
    trigger = fleet.trigger_over(5, max_concurrent=2)
    begun, codes = [], [0, 1, 0, 0, 0]
    while running := fleet.running(trigger):
        assert len(running) <= 2
        begun += [each.id for each in running if each.id not in begun]
        fleet.end(running[0], codes[begun.index(running[0].id)])
        fleet.exact(trigger)
    assert [each.deployment_id for each in fleet.targets(trigger)] == begun
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 4, "failed": 1, "cancelled": 0}
    ended = fleet.now(trigger)
    assert (ended.status, ended.status_reason) == ("FAILED", "1 of 5 failed")
    assert "non-zero status code: 1" in fleet.targets(trigger)[1].status_reason


def test_a_trigger_with_many_targets_continues_by_a_job(fleet):
    trigger = fleet.trigger_over(2 * SHARE + 3)
    assert fleet.exact(trigger)["running"] == 2 * SHARE + 3
    stopped = fleet.cancel(trigger)
    assert fleet.exact(trigger)["cancelled"] == 2 * SHARE + 3
    assert stopped.status == "CANCELLED"


@pytest.mark.parametrize(("most", "begun"), [(0, 1), (20, 3), (50, 6), (100, 10)])
def test_too_many_failures_end_the_queue(fleet, most, begun):
    trigger = fleet.trigger_over(10, max_concurrent=1, max_fail_percentage=most)
    count = 0
    while running := fleet.running(trigger):
        fleet.end(running[0], 1)
        count += 1
    assert count == begun
    assert fleet.exact(trigger)["cancelled"] == 10 - begun
    ended = fleet.now(trigger)
    assert ended.status == "FAILED"
    assert f"{begun} of 10 failed" in ended.status_reason
    if begun < 10:
        assert "Not begun" in fleet.targets(trigger)[-1].status_reason


def test_running_targets_end_after_too_many_failures(fleet):
    trigger = fleet.trigger_over(5, max_concurrent=3, max_fail_percentage=0)
    first, second, third = fleet.running(trigger)
    fleet.end(first, 1)
    assert fleet.exact(trigger) == {"queued": 0, "running": 2, "complete": 0, "failed": 1, "cancelled": 2}
    fleet.end(second)
    fleet.end(third, 2)
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 1, "failed": 2, "cancelled": 2}
    assert fleet.now(trigger).status == "FAILED"


@pytest.mark.parametrize(("canary", "first"), [(1, 1), (2, 2), ("40%", 2), ("1%", 1), (5, 5), ("100%", 5)])
def test_the_canaries_go_first_and_the_others_follow_their_success(fleet, canary, first):
    trigger = fleet.trigger_over(5, canary=canary)
    assert [target.status for target in fleet.targets(trigger)] == ["IN_PROGRESS"] * first + ["QUEUED"] * (5 - first)
    for each in fleet.running(trigger):
        assert len(fleet.running(trigger)) <= first
        fleet.end(each)
    assert fleet.exact(trigger)["running"] == 5 - first
    for each in fleet.running(trigger):
        fleet.end(each)
    assert fleet.now(trigger).status == "COMPLETE"


def test_a_canary_that_fails_ends_the_queue_when_all_canaries_have_ended(fleet):
    trigger = fleet.trigger_over(5, canary=2)
    first, second = fleet.running(trigger)
    fleet.end(first, 1)
    assert fleet.exact(trigger) == {"queued": 3, "running": 1, "complete": 0, "failed": 1, "cancelled": 0}
    fleet.end(second)
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 1, "failed": 1, "cancelled": 3}
    ended = fleet.now(trigger)
    assert (ended.status, ended.status_reason) == ("FAILED", "1 of 5 failed on the canaries: 3 were not run")
    again = fleet.again(trigger)
    assert [target.status for target in fleet.targets(again)] == ["IN_PROGRESS"] * 2 + ["QUEUED"] * 2


def test_a_canary_that_is_cancelled_proves_nothing(fleet):
    trigger = fleet.trigger_over(3, canary=1)
    fleet.do(service.cancel, fleet.running(trigger)[0], "ann", force=True)
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 0, "failed": 0, "cancelled": 3}
    assert "Not begun: 0 failed and 1 were cancelled on the canaries" in fleet.targets(trigger)[-1].status_reason


def test_targets_are_read_page_by_page(fleet):
    trigger = fleet.trigger_over(5, max_concurrent=2)
    with fleet.world.store.read() as tx:
        first = targets.page(tx, trigger.id, limit=3)
        rest = targets.page(tx, trigger.id, after=first[-1].position, limit=3)
        queued = targets.page(tx, trigger.id, limit=2, status="QUEUED")
    assert [each.position for each in (*first, *rest)] == [0, 1, 2, 3, 4]
    assert [each.position for each in queued] == [2, 3]


def test_cancel_drops_the_queue_and_cancels_running_targets(fleet):
    trigger = fleet.trigger_over(6, max_concurrent=3)
    told, finished, waiting = fleet.running(trigger)
    for each in (told, finished):
        fleet.deliver(each)
    stopping = fleet.cancel(trigger)
    assert fleet.exact(trigger) == {"queued": 0, "running": 2, "complete": 0, "failed": 0, "cancelled": 4}
    assert (stopping.status, stopping.status_reason) == ("IN_PROGRESS", "Cancelling: asked by bob")
    reasons = {each.deployment_id: each.status_reason for each in fleet.targets(trigger)}
    assert reasons[waiting.id] == "Cancelled by bob before it was delivered"
    assert fleet.world.to_run(waiting.server_id) == []
    assert [(run.deployment_id, run.is_cancelling) for run in fleet.world.read(documents.to_run, told.server_id)] == [
        (told.id, True)
    ]
    fleet.end(told, 143, deploy_status_reason="Stopped")
    fleet.end(finished)  # it had ended well before it heard of that
    assert fleet.exact(trigger) == {"queued": 0, "running": 0, "complete": 1, "failed": 0, "cancelled": 5}
    ended = fleet.now(trigger)
    assert (ended.status, ended.status_reason) == ("CANCELLED", "Cancelled by bob")
    with pytest.raises(Conflict, match="has ended"):
        fleet.cancel(trigger)


def test_a_forced_cancel_does_not_wait_for_agents(fleet):
    trigger = fleet.trigger_over(2)
    for each in fleet.running(trigger):
        fleet.deliver(each)
    assert fleet.exact(fleet.cancel(trigger))["running"] == 2
    first = fleet.running(trigger)[0]
    assert fleet.cancel(trigger, force=True).status == "CANCELLED"
    assert fleet.exact(trigger)["cancelled"] == 2
    assert [run.is_cancelling for run in fleet.world.read(documents.to_run, first.server_id)] == [True]
    fleet.end(first, 143)  # now it is told no more, and counts no more
    assert fleet.world.to_run(first.server_id) == []
    assert fleet.exact(trigger)["cancelled"] == 2


def test_a_single_target_is_cancelled(fleet):
    trigger = fleet.trigger_over(2, max_concurrent=1)
    (first,) = fleet.running(trigger)
    assert fleet.do(service.cancel, first, "bob").status == "FAILED"
    assert fleet.exact(trigger) == {"queued": 0, "running": 1, "complete": 0, "failed": 0, "cancelled": 1}
    (second,) = fleet.running(trigger)
    fleet.deliver(second)
    assert fleet.do(service.cancel, second, "bob").cancelling
    fleet.end(second, 1)
    assert fleet.exact(trigger)["cancelled"] == 2
    assert fleet.now(trigger).status == "CANCELLED"
    with pytest.raises(Conflict, match="nothing to cancel"):
        fleet.do(service.cancel, second, "bob")


def test_a_held_run_beyond_its_timeout_has_failed(fleet):
    """It was not cancelled, though no agent was told of it."""
    trigger = fleet.trigger_over(1)
    (held,) = fleet.running(trigger)
    fleet.world.store.write(lambda tx: deployments.save(tx, replace(held, held_by=WINDOW)))
    fleet.end(held, 1)
    assert fleet.exact(trigger)["failed"] == 1


def test_a_deployment_that_is_deleted_counts_as_cancelled(fleet):
    trigger = fleet.trigger_over(3, max_concurrent=1)
    first = fleet.running(trigger)[0]
    fleet.do(service.remove, first)
    assert fleet.exact(trigger) == {"queued": 1, "running": 1, "complete": 0, "failed": 0, "cancelled": 1}
    second = fleet.running(trigger)[0]
    fleet.end(second)
    fleet.do(service.remove, second)
    assert fleet.exact(trigger)["complete"] == 1


def test_deleting_a_trigger_deletes_everything_of_it(fleet):
    trigger = fleet.trigger_over(3)
    with pytest.raises(Conflict, match="cancel it first"):
        fleet.delete(trigger)
    found = fleet.running(trigger)
    for each in found:
        fleet.end(each)
    fleet.delete(trigger)
    with fleet.world.store.read() as tx:
        assert triggers.find(tx, trigger.id) is None
        assert targets.of_trigger(tx, trigger.id) == []
        assert deployments.list_all(tx, "p") == []
        assert configs.count(tx, "p") == 1  # the source
    with pytest.raises(EntityNotFound):
        fleet.now(trigger)


def test_failed_targets_are_triggered_again(fleet):
    inputs = [{"name": "a"}]
    trigger = fleet.trigger_over(4, config={"inputs": inputs}, action="FIX", input_values={"a": 1}, max_concurrent=1)
    with pytest.raises(Conflict, match="under way"):
        fleet.again(trigger)
    for code in (0, 1, 0, 1):
        fleet.end(fleet.running(trigger)[0], code)
    second = fleet.again(trigger)
    wrong = [each.server_id for each in fleet.targets(trigger) if each.status == "FAILED"]
    assert [each.server_id for each in fleet.targets(second)] == wrong
    assert {(target.exit_code, target.digest) for target in fleet.targets(second)} == {(None, None)}
    assert (second.action, second.requested_by, second.source["retry_of"]) == ("FIX", "bob", trigger.id)
    while running := fleet.running(second):
        assert running[0].input_values == {"a": 1}
        fleet.end(running[0])
    assert fleet.now(second).status == "COMPLETE"
    assert fleet.now(trigger).status == "FAILED"
    with pytest.raises(Conflict, match="Nothing"):
        fleet.again(second)
    assert fleet.again(second, only_failed=False).total == 2


def test_a_retried_deployment_counts_again(fleet):
    trigger = fleet.trigger_over(2)
    first, second = fleet.running(trigger)
    fleet.end(first, 1)
    with pytest.raises(Conflict, match="only what failed"):
        fleet.retry(second)
    again = fleet.retry(first)
    assert again.config_id != first.config_id
    assert fleet.exact(trigger) == {"queued": 0, "running": 2, "complete": 0, "failed": 0, "cancelled": 0}
    fleet.end(again)
    fleet.end(second, 1)
    assert fleet.now(trigger).status == "FAILED"
    fleet.end(fleet.retry(second))
    assert fleet.exact(trigger)["complete"] == 2
    assert fleet.now(trigger).status == "COMPLETE"


def test_deployments_of_a_cancelled_trigger_are_retried_individually(fleet):
    trigger = fleet.trigger_over(2)
    first, second = fleet.running(trigger)
    fleet.cancel(trigger)
    again = [fleet.retry(each) for each in (first, second)]
    fleet.end(again[0])
    assert fleet.exact(trigger) == {"queued": 0, "running": 1, "complete": 1, "failed": 0, "cancelled": 0}
    fleet.end(again[1])
    assert fleet.now(trigger).status == "COMPLETE"


def test_the_source_config_may_change_or_be_deleted_during_a_trigger(fleet):
    made, config = fleet.servers(2), fleet.config(config="first")
    trigger = fleet.trigger(config_id=config, servers=[each.id for each in made], max_concurrent=1)
    fleet.world.store.write(lambda tx: configs.delete(tx, config))
    fleet.end(fleet.running(trigger)[0])
    assert fleet.world.config_of(fleet.running(trigger)[0]).config == "first"


def test_the_cost_of_an_end_is_independent_of_the_number_of_targets(fleet):
    def cost(count: int) -> int:
        trigger = fleet.trigger_over(count, max_concurrent=2)
        deployment = fleet.running(trigger)[0]
        with recorded_statements(fleet.world.store, only_own=True) as statements:
            fleet.world.report(deployment)
        assert fleet.exact(trigger)["complete"] == 1
        return len(statements)

    few = cost(5)
    assert few > 3
    assert cost(300) == few


def test_changed_and_unchanged_targets_are_counted(fleet):
    trigger = fleet.trigger_over(4)
    first, second, third, silent = fleet.running(trigger)
    changes = [{"item": "/a", "outcome": "changed"}, {"item": "/b", "outcome": "failed"}]
    fleet.end(first, deploy_changed=True, deploy_changes=changes)
    fleet.end(second, deploy_changed=False)
    fleet.end(third, 1, deploy_changed=True)
    fleet.end(silent)
    ended = fleet.now(trigger)
    assert (ended.changed, ended.unchanged, ended.failed) == (2, 1, 1)
    assert [target.changed for target in fleet.targets(trigger)] == [True, False, True, None]
    assert fleet.deployment(fleet.targets(trigger)[0]).change_summary == "changed 1 item"

    # another run of the failed target replaces its count
    retried = fleet.retry(fleet.deployment(fleet.targets(trigger)[2]))
    assert (fleet.now(trigger).changed, retried.changed) == (1, None)
    fleet.end(retried, deploy_changed=False)
    ended = fleet.now(trigger)
    assert (ended.changed, ended.unchanged) == (1, 2)
    assert ended.status_reason == "All 4 succeeded: 1 changed, 2 unchanged"
    assert {target.changed for target in fleet.targets(fleet.again(trigger, only_failed=False))} == {None}


@pytest.mark.parametrize("is_sent", [True, False])
def test_an_unexpected_error_at_one_target_does_not_affect_the_others(fleet, monkeypatch, is_sent):
    first, broken, last = fleet.servers(3)
    real = service.start_run

    def start(tx, env, request):
        started = real(tx, env, request)
        if request.server_id == broken.id:
            if is_sent:
                assert deployments.get(tx, started.id) is not None
            raise TypeError("a bug")
        return started

    monkeypatch.setattr(service, "start_run", start)
    trigger = fleet.trigger_on(first, broken, last)
    assert fleet.exact(trigger) == {"queued": 0, "running": 2, "complete": 0, "failed": 1, "cancelled": 0}
    assert fleet.targets(trigger)[1].status_reason == "Internal error: TypeError"
    assert {made.server_id for made in fleet.world.deployments()} == {first.id, last.id}
