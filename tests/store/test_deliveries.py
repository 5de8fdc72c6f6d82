"""Which runs of a server's document were sent, and which were acknowledged."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from msgspec.structs import replace

from stoker.store import deployments, documents, held_runs
from support.deployments import begin, deliver


def unsent(store, project):
    with store.read() as tx:
        return [id for id, _ in documents.unsent(tx, "s", project)]


def unreceived(store):
    with store.read() as tx:
        entries = documents.to_run(tx, "s")
        return {entry.deployment_id: not entry.is_unsent for entry in entries if entry.is_unreceived}


def test_a_run_is_delivered_once_the_agent_has_acknowledged_it_even_without_a_recorded_sending(store):
    made = begin(store, "a")
    assert unreceived(store) == {made.id: False}
    sent = deliver(store, made, received=False).run
    assert (sent.state, sent.channel, sent.delivered_at) == ("QUEUED", "STOKER_PUSH", None)
    assert unreceived(store) == {made.id: True}
    received = deliver(store, made).run
    assert (received.state, received.delivered_at) == ("DELIVERED", sent.sent_at)
    assert unreceived(store) == {}
    received = deliver(store, begin(store, "b")).run
    assert (received.state, received.channel) == ("DELIVERED", "STOKER_PUSH")
    assert received.delivered_at is not None


def test_a_run_that_was_sent_and_acknowledged_since_the_last_record_is_delivered_when_it_was_sent(store):
    made = begin(store, "a")
    delivery = partial(deployments.Delivery, made.id, made.config_id)
    at = made.created_at

    def record_both(tx):
        sent, acknowledged = delivery("STOKER_PUSH", at, False), delivery("STOKER_PUSH", at + timedelta(seconds=1))
        deployments.record_deliveries(tx, [sent, acknowledged])
        return deployments.get(tx, made.id).run

    run = store.write(record_both)
    assert (run.state, run.channel, run.delivered_at) == ("DELIVERED", "STOKER_PUSH", at)


def test_each_project_has_its_own_runs_on_an_unknown_server(store):
    made = begin(store, "a")
    store.write(lambda tx: deployments.add(tx, replace(made, id="theirs", project_id="q")))
    assert unsent(store, "p") == [made.id]
    assert unsent(store, "q") == ["theirs"]
    assert unsent(store, "r") == []
    assert unreceived(store) == {made.id: False, "theirs": False}
    with store.read() as tx:
        assert len(documents.bodies(tx, "s", "p")) == len(documents.bodies(tx, "s", "q")) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda tx, made: deployments.heartbeat(tx, made.id, made.config_id, "STOKER_PUSH"),
        lambda tx, made: deployments.record_deliveries(
            tx, [deployments.Delivery(made.id, made.config_id, "STOKER_PUSH", tx.now)]
        ),
        lambda tx, made: held_runs.hold_back(tx, "s", "p", "the window"),
    ],
    ids=["heartbeat", "delivery", "window"],
)
def test_a_deployment_that_was_read_in_advance_is_read_again_after_a_change(store, change):
    made = begin(store, "a")

    def states(tx):
        deployments.prime_with_configs(tx, [made.id])
        before = deployments.get(tx, made.id).run.state
        change(tx, made)
        return before, deployments.get(tx, made.id).run.state

    before, after = store.write(states)
    assert before == "QUEUED" != after
