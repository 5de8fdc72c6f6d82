"""How far a run is, whoever says it; and that nobody does."""

from __future__ import annotations

import pytest

from stoker.deployments import run_end, runs
from stoker.store import deployments
from support.clock import age
from support.deployments import ENV, begin, run_of, signal


def state_now(store, deployment):
    with store.read() as tx:
        found = deployments.get(tx, deployment.id).run
        return found.state_at(tx.now)


def beat(store, deployment):
    store.write(lambda tx: runs.heartbeat(tx, server_id="s", config_id=deployment.config_id))


@pytest.mark.parametrize(
    ("said", "percent", "message", "reason"),
    [
        ({"deploy_percent": 42, "deploy_message": "half way"}, 42, "half way", "Running (42 %): half way"),
        ({"deploy_percent": "42%", "deploy_status_reason": "x\0y"}, 42, "xy", "Running (42 %): xy"),
        ({"deploy_percent": 101}, None, None, "Running"),
        ({"deploy_percent": [1], "deploy_message": {"a": 1}}, None, "{'a': 1}", "Running: {'a': 1}"),
        ({"deploy_status_code": 1, "result": "x"}, None, None, "Running"),
    ],
)
def test_a_signal_with_progress_does_not_end_the_run(store, said, percent, message, reason):
    made = begin(store, "a")
    found = signal(store, made, deploy_status="IN_PROGRESS", **said)
    assert (found.status, found.status_reason, found.output_values) == ("IN_PROGRESS", reason, {})
    run = run_of(store, made)
    assert (run.state, run.percent, run.message) == ("RUNNING", percent, message)
    assert run.started_at is not None
    assert signal(store, made, deploy_status_code=0).status == "COMPLETE"
    assert signal(store, made, deploy_status="IN_PROGRESS", deploy_percent=7).status_reason == "Outputs received"


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ({"deploy_status": "COMPLETE", "deploy_status_code": 3}, "COMPLETE", "Outputs received"),
        ({"deploy_status": "COMPLETE", "deploy_status_reason": "well done"}, "COMPLETE", "well done"),
        ({"deploy_status": "FAILED", "deploy_status_code": 0}, "FAILED", "The agent says that it failed"),
        ({"deploy_status": "FAILED", "deploy_status_reason": "no disk"}, "FAILED", "no disk"),
        ({"deploy_status": "odd", "deploy_status_code": 0}, "COMPLETE", "Outputs received"),
    ],
)
def test_a_signal_with_a_status_ends_the_run(store, said, status, reason):
    found = signal(store, begin(store, "a"), **said)
    assert (found.status, found.status_reason) == (status, reason)


def test_a_run_is_unresponsive_until_its_agent_sends_a_heartbeat(store):
    made = begin(store, "a")
    assert state_now(store, made) == "QUEUED"
    age(store, "deployments", 3600)
    assert state_now(store, made) == "QUEUED"
    beat(store, made)
    assert state_now(store, made) == "RUNNING"
    assert run_of(store, made).channel == "STOKER_PUSH"  # nobody had noted that it was delivered
    age(store, "deployments", 44)
    assert state_now(store, made) == "RUNNING"
    age(store, "deployments", 2)
    assert state_now(store, made) == "UNRESPONSIVE"
    beat(store, made)
    assert state_now(store, made) == "RUNNING"
    signal(store, made, deploy_status_code=0)
    age(store, "deployments", 3600)
    assert state_now(store, made) == "DONE"


def test_a_heartbeat_keeps_the_progress(store):
    made = begin(store, "a")
    signal(store, made, deploy_status="IN_PROGRESS", deploy_percent=42, deploy_message="half way")
    beat(store, made)
    run = run_of(store, made)
    assert (run.percent, run.message) == (42, "half way")


def test_a_run_stays_cancelling_during_further_progress(store):
    made = begin(store, "a")
    beat(store, made)
    store.write(lambda tx: run_end.cancel(tx, ENV.work, deployments.get(tx, made.id), "Cancelled"))
    beat(store, made)
    store.write(lambda tx: runs.progress(tx, server_id="s", config_id=made.config_id, percent=7, message=None))
    with store.read() as tx:
        assert deployments.get(tx, made.id).status_reason == "Cancelling"
    assert state_now(store, made) == "CANCELLING"


def test_progress_after_the_end_changes_nothing(store):
    made = begin(store, "a")
    signal(store, made)
    store.write(lambda tx: runs.progress(tx, server_id="s", config_id=made.config_id, percent=99, message="late"))
    with store.read() as tx:
        assert deployments.get(tx, made.id).status_reason == "Outputs received"
