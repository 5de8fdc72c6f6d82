"""Documents: what is to run, by revision; and live output, bounded."""

from __future__ import annotations

import json
import threading

import pytest

from stoker.deployments import manage, runs
from stoker.deployments.documents import Documents
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import deployments
from stoker.store import runs as stored


def begin(store, name: str, *, awaits: bool = True, server: str = "s"):
    run = manage.Run(
        action="CREATE",
        name=name,
        group="script",
        config="#!/bin/sh",
        inputs=(),
        outputs=({"name": "result"},),
        options={},
        input_values={},
        signal_transport="STOKER_SIGNAL" if awaits else "NO_SIGNAL",
        awaits_signal=awaits,
    )
    return store.write(
        lambda tx: manage.begin(tx, run, project_id="p", server_id=server, deployment_id=f"{server}-{name}")
    )


def entries(document):
    return [each["name"] for each in json.loads(document.body)["deployments"]]


def test_agents_get_what_is_left_to_do_in_order_of_names(store):
    documents = Documents(store)
    begin(store, "b")
    begin(store, "a", awaits=False)
    done = begin(store, "c")
    assert entries(documents.load_agent("s")) == ["a", "b", "c"]

    store.write(lambda tx: manage.take_signal(tx, deployments.get(tx, done.id), {"deploy_status_code": 0}))
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


def log(store, config_id, offset, data, stream="stdout"):
    return store.write(
        lambda tx: runs.log(tx, server_id="s", config_id=config_id, stream=stream, offset=offset, data=data)
    )


def text(store, deployment_id):
    with store.read() as tx:
        return "".join(each.data for each in stored.chunks(tx, deployment_id, 0, 1000))


def test_repeated_output_is_kept_once(store):
    made = begin(store, "a")
    assert log(store, made.config_id, 0, b"hello ") == 6
    assert log(store, made.config_id, 3, b"lo world") == 11
    assert log(store, made.config_id, 0, b"hello") == 11

    assert text(store, made.id) == "hello world"


def test_a_gap_is_asked_for_again(store):
    made = begin(store, "a")
    assert log(store, made.config_id, 100, b"later") == 0
    assert text(store, made.id) == ""


def test_beyond_the_bound_only_the_count_goes_on(store, monkeypatch):
    monkeypatch.setattr(runs, "KEPT", 10)
    made = begin(store, "a")
    assert log(store, made.config_id, 0, b"12345678") == 8
    assert log(store, made.config_id, 8, b"9abcdef") == 15
    assert log(store, made.config_id, 15, b"more") == 19

    assert text(store, made.id) == "123456789a"


def test_a_run_of_another_server_is_not_there(store):
    made = begin(store, "a")
    for say in (
        lambda tx: runs.log(tx, server_id="t", config_id=made.config_id, stream="stdout", offset=0, data=b"x"),
        lambda tx: runs.progress(tx, server_id="t", config_id=made.config_id, state="RUNNING", percent=1, message=None),
    ):
        with pytest.raises(EntityNotFound):
            store.write(say)


def test_a_stream_is_stdout_or_stderr(store):
    made = begin(store, "a")
    with pytest.raises(Invalid):
        log(store, made.config_id, 0, b"x", stream="stdin")


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
    store.write(lambda tx: manage.take_signal(tx, deployments.get(tx, made.id), {}))
    assert say(99, "late") == "Outputs received"
