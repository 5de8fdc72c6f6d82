"""Documents: what is to run, by revision; and who was told of it."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest

from stoker.deployments import run_end
from stoker.deployments.documents import Documents
from stoker.servers import enrollment
from stoker.store import deployments, servers
from stoker.store import documents as stored_documents
from stoker.store.notifier import ALL
from support.deployments import ENV, begin, run_of, signal
from support.waiting import until


def entries(document):
    return [each["name"] for each in json.loads(document.body)["deployments"]]


def test_the_agents_document_lists_pending_runs_by_name(store):
    documents = Documents(store)
    begin(store, "b")
    begin(store, "a", awaits=False)
    done = begin(store, "c")
    assert entries(documents.load_agents([("s", True)])[0]) == ["a", "b", "c"]

    signal(store, done, deploy_status_code=0)
    assert documents.agent("s") is None, "the change was not heard"
    assert entries(documents.load_agents([("s", True)])[0]) == ["a", "b"]


def test_only_the_agents_form_of_an_entry_names_its_deployment(store):
    documents = Documents(store)
    made = begin(store, "a")
    (ours,) = json.loads(documents.load_agents([("s", True)])[0].body)["deployments"]
    (theirs,) = json.loads(documents.load_heat("s", "p").body)["metadata"]

    assert ours.pop("deployment_id") == made.id
    assert ours == theirs
    assert json.loads(documents.load_heat("s", "other").body) == {"metadata": []}


def test_every_change_is_a_new_revision(store):
    documents = Documents(store)
    server = store.write(lambda tx: enrollment.enroll(tx, "p", "one"))[0].id
    first = documents.load_agents([(server, True)])[0].revision
    made = begin(store, "a", server=server)
    second = documents.load_agents([(server, True)])[0].revision
    store.write(lambda tx: run_end.withdraw(tx, ENV, deployments.get(tx, made.id)))

    assert first < second < documents.load_agents([(server, True)])[0].revision


def test_the_document_of_an_unknown_server_ends_with_its_last_deployment(store):
    """REST clients may name any server; Stoker remembers none that nothing runs on."""
    documents = Documents(store)
    one, other = begin(store, "a"), begin(store, "b")
    for made, entries_left in ((one, 1), (other, 0)):
        store.write(lambda tx, id=made.id: run_end.withdraw(tx, ENV, deployments.get(tx, id)))
        assert len(entries(documents.load_agents([("s", True)])[0])) == entries_left
    with store.read() as tx:
        assert stored_documents.revision(tx, "s") == 0
    begin(store, "c")
    assert len(entries(documents.load_agents([("s", True)])[0])) == 1


def test_a_slow_reader_caches_no_outdated_document(store):
    documents = Documents(store)
    begin(store, "a")
    old = documents.load_agents([("s", True)])[0]
    begin(store, "b")
    documents._keep("s", "agent", old, documents.epoch)

    found = documents.agent("s")
    assert found is None or found.revision > old.revision


def test_a_document_read_before_the_cache_was_cleared_is_not_cached(store):
    """The reader's snapshot is older than a change that this process was never notified of."""
    documents = Documents(store)
    begin(store, "a")
    epoch = documents.epoch
    old = documents.load_agents([("s", True)])[0]
    store.notifier.notify({ALL: 0})
    documents._keep("s", "agent", old, epoch)
    assert documents.agent("s") is None
    assert documents.load_agents([("s", True)])[0] is documents.agent("s")


def test_concurrent_writers_and_readers_end_with_the_newest_document(store):
    documents = Documents(store)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            documents.agent("s") or documents.load_agents([("s", True)])[0]

    readers = [threading.Thread(target=read) for _ in range(3)]
    for each in readers:
        each.start()
    for i in range(20):
        begin(store, f"n{i:02}")
    stop.set()
    for each in readers:
        each.join()

    assert len(entries(documents.agent("s") or documents.load_agents([("s", True)])[0])) == 20


@pytest.mark.parametrize(
    ("said", "seconds"),
    [(0, 0), (1.5, 1.5), (30 * 24 * 3600, 0), *((odd, None) for odd in (-1, True, "1", None, [1], 1e300))],
)
def test_the_start_of_a_run_without_progress_follows_from_its_duration(store, said, seconds):
    made = begin(store, "a")
    signal(store, made, deploy_status_code=0, deploy_run_seconds=said)
    run = run_of(store, made)
    assert "deploy_run_seconds" not in run.output_values
    if seconds is None:
        assert run.started_at is None
    elif said == seconds:
        assert run.started_at == max(run.queued_at, run.ended_at - timedelta(seconds=seconds))
    else:
        assert run.started_at == run.queued_at


def recorded(store, deployment, state):
    """Its run, once the tracker has written that state."""
    until(lambda: run_of(store, deployment).state == state, explain=lambda: f"it is {run_of(store, deployment).state}")
    return run_of(store, deployment)


def test_a_run_is_delivered_when_the_agent_acknowledges_its_document(store):
    documents = Documents(store)
    first = begin(store, "a")
    document = documents.load_agents([("s", True)])[0]
    second = begin(store, "b")
    documents.record_sent(document, "STOKER_PUSH")
    documents.record_receipt(document)
    assert recorded(store, first, "DELIVERED").channel == "STOKER_PUSH"
    assert run_of(store, second).state == "QUEUED"
    documents.record_sent(documents.load_agents([("s", True)])[0], "POLL_SERVER_CFN")  # a transport without receipts
    assert recorded(store, second, "DELIVERED").channel == "POLL_SERVER_CFN"
    assert not documents.load_agents([("s", True)])[0].unreceived


def test_a_document_that_no_agent_acknowledges_delivers_nothing(store):
    """Its agent may have been killed while it was answered."""
    documents, topic = Documents(store), threading.Event()
    made = begin(store, "a")
    store.notifier.subscribe(lambda names: f"d/{made.id}" in names and topic.set())
    document = documents.load_agents([("s", True)])[0]
    documents.record_sent(document, "STOKER_PUSH")
    assert topic.wait(60)  # the sending is recorded
    run = run_of(store, made)
    assert (run.state, run.delivered_at) == ("QUEUED", None)
    assert run.sent_at is not None
    documents.record_receipt(documents.load_agents([("s", True)])[0])  # another process, or this one after a change
    recorded(store, made, "DELIVERED")


def test_a_run_that_ended_before_its_delivery_was_noted_keeps_its_end(store):
    documents = Documents(store)
    made = begin(store, "a")
    document = documents.load_agents([("s", True)])[0]
    signal(store, made, deploy_status_code=0)
    documents.record_sent(document, "STOKER_PUSH")
    found = recorded(store, made, "DONE")
    assert found.status == "COMPLETE"


def test_a_document_contains_the_limit_of_parallel_runs(store):
    server = store.write(lambda tx: enrollment.enroll(tx, "p", "one"))[0]
    for name in ("a", "b"):
        begin(store, name, server=server.id)
    documents = Documents(store)
    assert json.loads(documents.load_agents([(server.id, True)])[0].body)["concurrency"] == 1
    store.write(lambda tx: servers.change(tx, server.id, policy={"max_concurrent_runs": 3}))
    assert json.loads(documents.load_agents([(server.id, True)])[0].body)["concurrency"] == 3


def test_documents_of_servers_without_deployments_are_not_cached(store):
    documents = Documents(store)
    begin(store, "a")
    documents.load_heat("unknown", "p")
    documents.load_heat("s", "p")
    assert documents.heat("unknown", "p") is None
    assert documents.heat("s", "p") is not None


def test_the_cache_is_bounded_with_its_keys(store):
    """Bodies of nothing under long keys filled the memory."""
    documents = Documents(store, max_bytes=10_000)
    begin(store, "a")
    documents.load_heat("s", "p" * 20_000)
    assert documents.heat("s", "p" * 20_000) is None
    for number in range(40):
        begin(store, "a", server=f"s{number}")
        documents.load_agents([(f"s{number}", True)])
    assert documents._bytes <= 10_000
    kept = [number for number in range(40) if documents.agent(f"s{number}") is not None]
    assert 0 < len(kept) < 40
    assert kept == list(range(kept[0], 40))
