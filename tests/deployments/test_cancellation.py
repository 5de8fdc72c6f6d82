"""A run is told to stop: what its agent is told, and what is said of it meanwhile and afterwards."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from stoker.deployments import run_end
from stoker.deployments.documents import Documents
from stoker.model.server import Kind, Server
from stoker.store import deployments, servers
from support.deployments import ENV, begin, deliver, run_of, signal


def entries(store):
    return json.loads(Documents(store).load_agents([("s", True)])[0].body)["deployments"]


def cancel(store, made):
    return store.write(lambda tx: run_end.cancel(tx, ENV.work, deployments.get(tx, made.id), "Cancelled"))


SAID = {"deploy_status_reason": "Cancelled: ended by TERM after 0.2 s", "deploy_status_code": 143}


def test_an_undelivered_run_is_cancelled_at_once(store):
    made = begin(store, "a")
    found = cancel(store, made)
    assert (found.status, found.status_reason) == ("FAILED", "Cancelled before it was delivered")
    assert entries(store) == []


def add_agent(store, seconds, **members):
    """Add the server, whose agent was seen so many seconds ago."""

    def do(tx):
        values = {"kind": Kind.ENROLLED, "key_generation": 1, "created_at": tx.now, **members}
        servers.add(tx, Server(id="s", project_id="p", name="web", **values))
        servers.record_seen_again(tx, tx.now - timedelta(seconds=seconds), ["s"])

    store.write(do)


def test_an_agent_that_polls_may_have_begun_a_run_whose_delivery_is_not_recorded_yet(store):
    add_agent(store, 29)
    made = begin(store, "a")
    assert cancel(store, made).status_reason == "Cancelling"
    (entry,) = entries(store)
    assert (entry["id"], entry["cancel"]) == (made.config_id, True)
    store.write(lambda tx: run_end.force_fail(tx, ENV.work, deployments.get(tx, made.id), "Cancelled by force"))
    assert entries(store)[0]["cancel"] is True
    store.write(lambda tx: run_end.record_stopped(tx, deployments.get(tx, made.id), SAID))
    with store.read() as tx:
        stopped = deployments.get(tx, made.id)
    assert (stopped.status, stopped.status_reason) == ("FAILED", "Cancelled by force")
    assert entries(store) == []


@pytest.mark.parametrize(
    ("seconds", "members"),
    [
        (130, {}),
        (0, {"kind": Kind.DEPLOYED, "key_generation": 0}),
        (0, {"kind": Kind.DEPLOYED, "agent": "heat-agents"}),
    ],
)
def test_a_run_that_no_agent_of_stoker_can_have_begun_is_cancelled_at_once(store, seconds, members):
    add_agent(store, seconds, **members)
    assert cancel(store, begin(store, "a")).status_reason == "Cancelled before it was delivered"
    assert entries(store) == []


def test_stokers_agent_gets_the_cancellation_and_reports_the_result(store):
    made = begin(store, "a")
    deliver(store, made, "STOKER_PUSH")
    assert "cancel" not in entries(store)[0]
    found = cancel(store, made)
    assert (found.status, found.status_reason) == ("IN_PROGRESS", "Cancelling")
    assert run_of(store, made).state == "CANCELLING"
    (entry,) = entries(store)
    assert (entry["id"], entry["cancel"]) == (made.config_id, True)
    ended = signal(store, made, **SAID)
    assert ended.status == "FAILED"
    assert ended.status_reason.startswith("Cancelled: ended by TERM after 0.2 s")
    assert (run_of(store, made).state, run_of(store, made).status_code) == ("DONE", "143")
    assert entries(store) == []


def test_a_delivered_run_of_an_upstream_agent_cannot_be_cancelled(store):
    made = begin(store, "a")
    deliver(store, made, "POLL_SERVER_CFN")
    found = cancel(store, made)
    assert found.status == "FAILED"
    assert "its agent cannot be reached" in found.status_reason
    assert entries(store) == []
