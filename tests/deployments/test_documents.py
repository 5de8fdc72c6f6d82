"""Documents: what is to run, by revision; and who was told of it."""

from __future__ import annotations

import json
import threading
import time
from datetime import timedelta

import pytest

from stoker.deployments import manage, runs, stopping
from stoker.deployments.documents import LOG_BYTES, Documents
from stoker.servers import enrol
from stoker.store import deployments, servers
from stoker.store import runs as stored
from support.deploying import begin


def entries(document):
    return [each["name"] for each in json.loads(document.body)["deployments"]]


def test_agents_get_what_is_left_to_do_in_order_of_names(store):
    documents = Documents(store)
    begin(store, "b")
    begin(store, "a", awaits=False)
    done = begin(store, "c")
    assert entries(documents.load_agent("s")) == ["a", "b", "c"]

    store.write(lambda tx: manage.take_signal(tx, deployments.get(tx, done.id), {"deploy_status_code": 0}, LOG_BYTES))
    assert documents.agent("s") is None, "the change was not heard"
    assert entries(documents.load_agent("s")) == ["a", "b"]


def test_an_entry_names_its_deployment_and_heats_form_does_not(store):
    documents = Documents(store)
    made = begin(store, "a")
    (ours,) = json.loads(documents.load_agent("s").body)["deployments"]
    (theirs,) = json.loads(documents.load_heat("s", "p").body)["metadata"]

    assert ours.pop("deployment_id") == made.id
    assert ours == theirs
    assert json.loads(documents.load_heat("s", "other").body) == {"metadata": []}


def test_every_change_is_a_new_revision(store):
    documents = Documents(store)
    first = documents.load_agent("s").revision
    begin(store, "a")
    second = documents.load_agent("s").revision
    store.write(lambda tx: manage.withdraw(tx, deployments.get(tx, "s-a")))

    assert first < second < documents.load_agent("s").revision


def test_a_slow_reader_puts_no_old_document_back(store):
    documents = Documents(store)
    begin(store, "a")
    old = documents.load_agent("s")
    begin(store, "b")
    documents._keep("s", "agent", old)

    found = documents.agent("s")
    assert found is None or found.revision > old.revision


def test_the_cache_is_bounded(store):
    documents = Documents(store, max_bytes=2000)
    for i in range(20):
        begin(store, "a", server=f"s{i}")
        documents.load_agent(f"s{i}")

    assert documents._bytes <= 2000
    assert documents.agent("s19") is not None
    assert documents.agent("s0") is None


def test_racing_writers_and_readers_end_with_the_newest(store):
    documents = Documents(store)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            documents.agent("s") or documents.load_agent("s")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for each in readers:
        each.start()
    for i in range(20):
        begin(store, f"n{i:02}")
    stop.set()
    for each in readers:
        each.join()

    assert len(entries(documents.agent("s") or documents.load_agent("s"))) == 20


def test_progress_is_the_reason_until_the_end(store):
    made = begin(store, "a")

    def say(percent, message):
        store.write(
            lambda tx: runs.progress(
                tx, server_id="s", config_id=made.config_id, state="RUNNING", percent=percent, message=message
            )
        )
        with store.read() as tx:
            return deployments.get(tx, made.id).status_reason

    assert say(42, "loading\0") == "Running (42 %): loading"
    assert say(None, None) == "Running"
    store.write(lambda tx: manage.take_signal(tx, deployments.get(tx, made.id), {}, LOG_BYTES))
    assert say(99, "late") == "Outputs received"


def run_of(store, deployment):
    with store.read() as tx:
        return stored.find(tx, deployment.id, deployment.config_id)


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(0, 0), (1.5, 1.5), (30 * 24 * 3600, 0), *((odd, None) for odd in (-1, True, "1", None, [1], 1e300))],
)
def test_a_run_that_its_agent_never_spoke_of_began_as_long_ago_as_it_took(store, said, seconds):
    made = begin(store, "a")
    store.write(
        lambda tx: manage.take_signal(tx, made, {"deploy_status_code": 0, "deploy_run_seconds": said}, LOG_BYTES)
    )
    run = run_of(store, made)
    assert "deploy_run_seconds" not in run.output_values
    if seconds is None:
        assert run.started_at is None
    elif said == seconds:
        assert run.started_at == max(run.queued_at, run.ended_at - timedelta(seconds=seconds))
    else:
        assert run.started_at == run.queued_at


def delivered(store, deployment):
    """Its run, once it is noted that an agent was told of it."""
    until = time.monotonic() + 30
    while (found := run_of(store, deployment)).delivered_at is None:
        assert time.monotonic() < until, "it was never noted"
        time.sleep(0.01)
    return found


def test_what_an_agent_was_told_of_is_delivered_and_only_that(store):
    documents = Documents(store)
    first = begin(store, "a")
    document = documents.load_agent("s")
    second = begin(store, "b")
    documents.went_out(document, "STOKER_PUSH")
    found = delivered(store, first)
    assert (found.state, found.channel) == ("DELIVERED", "STOKER_PUSH")
    assert run_of(store, second).state == "WAITING"
    documents.went_out(documents.load_agent("s"), "POLL_SERVER_CFN")
    assert delivered(store, second).channel == "POLL_SERVER_CFN"
    assert run_of(store, first) == found
    assert not documents.load_agent("s").news


def test_who_follows_hears_that_it_is_delivered(store):
    documents, heard = Documents(store), threading.Event()
    made = begin(store, "a")
    store.bell.listen(lambda topic, _: topic == f"d/{made.id}" and heard.set())
    documents.went_out(documents.load_agent("s"), "STOKER_PUSH")
    assert heard.wait(30)


def test_a_run_that_ended_before_its_delivery_was_noted_keeps_its_end(store):
    documents = Documents(store)
    made = begin(store, "a")
    document = documents.load_agent("s")
    store.write(lambda tx: manage.take_signal(tx, deployments.get(tx, made.id), {"deploy_status_code": 0}, LOG_BYTES))
    documents.went_out(document, "STOKER_PUSH")
    found = delivered(store, made)
    assert (found.state, found.status) == ("DONE", "COMPLETE")


def test_what_is_withheld_is_not_delivered(store):
    documents = Documents(store)
    made = begin(store, "a")
    store.write(lambda tx: stopping.cancel(tx, deployments.get(tx, made.id), "Cancelled"))
    assert documents.load_agent("s").news == ()


def test_a_document_says_how_many_may_run_at_a_time(store):
    server = store.write(lambda tx: enrol.enrol(tx, "p", "one"))[0]
    for name in ("a", "b"):
        begin(store, name, server=server.id)
    documents = Documents(store)
    assert json.loads(documents.load_agent(server.id).body)["concurrency"] == 1
    store.write(lambda tx: servers.set_policy(tx, server.id, {"max_concurrent_runs": 3}))
    assert json.loads(documents.load_agent(server.id).body)["concurrency"] == 3
