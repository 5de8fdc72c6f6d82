"""What a stream of a trigger's events says, reading by reading; and what several do with one trigger at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from stoker.deployments import log_storage, runs, service
from stoker.http.event_stream import Batch
from stoker.http.stoker import trigger_events
from stoker.http.stoker.trigger_events import TriggerReader
from stoker.http.stoker.triggers import encode_cursor
from stoker.store import targets, triggers
from stoker.store.notifier import ALL, deployment_topic
from stoker.store.open import Store
from stoker.triggers import lifecycle
from support import databases
from support.blocking import HeldWrite, until_blocked
from support.clock import Clock, age
from support.fleet import Fleet
from support.in_process import Inside

#: Where transactions that write go on side by side.
ON_POSTGRESQL = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@dataclass
class Stream:
    """A reader that reads in a transaction each."""

    reader: TriggerReader
    store: Store

    def read(self, notified: Collection[str] | None = None) -> Batch:
        with self.store.read() as tx:
            return self.reader.read(tx, notified)


@pytest.fixture
def follow(tmp_path) -> Iterator[Callable[..., Stream]]:
    joined: list[Inside] = []

    def following_of(fleet: Fleet, trigger, after: str = "", **kinds) -> Stream:
        if not joined:
            # A second application on the same database; an application binds the callbacks of its store once.
            joined.append(Inside(tmp_path, Store(fleet.world.store.url, keys=databases.keys)))
        return Stream(TriggerReader(trigger.id, fleet.world.project, after, **kinds), joined[0].store)

    yield following_of
    for each in joined:
        each.close()
        each.store.close()


def begun(fleet: Fleet, count: int):
    trigger = fleet.trigger_over(count)
    return trigger, fleet.running(trigger)


def writing(deployment, data: bytes, offset: int = 0):
    run = {"server_id": deployment.server_id, "config_id": deployment.config_id}
    return lambda tx: log_storage.append_log(tx, offset=offset, data=data, stream="stdout", most=1024 * 1024, **run)


def told(batch) -> list[str]:
    return [each.data.data for each in batch.events if each.name == "log"]


def ids(batch) -> list[str]:
    return [each.id for each in batch.events if each.name == "log"]


def floors(batch) -> list[int]:
    """The numbers of the output after which a stream with these ids continues."""
    return [int(id.partition(".")[2]) for id in ids(batch)]


@ON_POSTGRESQL
def test_events_that_become_visible_late_are_sent(fleet, store, follow):
    trigger, (one, other) = begun(fleet, 2)
    stream = follow(fleet, trigger)
    late = HeldWrite(store, writing(one, b"early"))
    store.write(writing(other, b"late"))
    first = stream.read()
    assert told(first) == ["late"]
    again = follow(fleet, trigger, ids(first)[-1])  # the connection broke, and the client says what it saw last
    late.commit()
    assert told(stream.read()) == ["early"]
    assert told(stream.read()) == []
    assert "early" in told(again.read())
    store.write(writing(one, b"more", 5))
    assert told(stream.read()) == ["more"]
    # The output of its last moments comes before the end.
    store.write(writing(one, b"!", 9))
    late = HeldWrite(store, writing(other, b"?", 4))
    fleet.end(one)
    assert told(stream.read()) == ["!"]
    late.commit()
    fleet.end(other)
    last = stream.read()
    assert (told(last), last.over) == (["?"], True)


STATES = {"kinds": frozenset(("state",))}


def states(batch) -> list[tuple[int, str]]:
    return [(event.data.position, event.data.status) for event in batch.events if event.name == "state"]


def test_a_stream_of_states_continues_after_any_event(heat, fleet, follow):
    trigger, (one, _) = begun(fleet, 2)
    stream = follow(fleet, trigger, **STATES)
    heat.store.write(writing(one, b"text"))
    first = stream.read()
    assert states(first) == [(0, "IN_PROGRESS"), (1, "IN_PROGRESS")]
    assert len(first.events) == 2  # no output
    fleet.end(one, 3, deploy_stdout="text")
    second = stream.read()
    assert states(second) == [(0, "FAILED")]
    assert (second.events[0].data.exit_code, second.events[0].data.digest is None) == ("3", False)
    both = [(0, "FAILED"), (1, "IN_PROGRESS")]
    assert first.events[0].id is None  # the stream continues before the read
    assert states(follow(fleet, trigger, first.events[1].id, **STATES).read()) == both
    # The target in progress comes again: its run may have changed without a change of the trigger.
    assert states(follow(fleet, trigger, second.events[0].id, **STATES).read()) == both[1:]


def test_a_stream_of_states_continues_after_a_list_and_begins_with_an_unknown_cursor(heat, fleet, follow):
    trigger, (one, other) = begun(fleet, 2)
    fleet.end(one)
    cursor = f"{encode_cursor(fleet.now(trigger).revision + 1, -1)}.0"
    assert states(follow(fleet, trigger, cursor, **STATES).read()) == [(1, "IN_PROGRESS")]
    fleet.end(other)
    last = follow(fleet, trigger, cursor, **STATES).read()
    assert (states(last), last.over) == ([(1, "COMPLETE")], True)

    batch = follow(fleet, trigger, f"{encode_cursor(10_000, 3)}.0", **STATES).read()
    assert [event.name for event in batch.events] == ["resync", "state", "state", "end"]


def test_a_stream_has_the_events_of_its_kinds_only(heat, fleet, follow):
    trigger, (one,) = begun(fleet, 1)
    heat.store.write(writing(one, b"text"))
    fleet.end(one)
    for kind in ("target", "state", "log", "trigger"):
        batch = follow(fleet, trigger, kinds=frozenset((kind,))).read()
        assert [event.name for event in batch.events] == [kind, "end"]


def test_events_are_read_in_pages_after_the_last_one(heat, fleet, follow):
    trigger, running = begun(fleet, 3)
    for offset in range(150):
        for each in running:
            heat.store.write(writing(each, b"%d" % (offset % 10), offset))
    age(heat.store, "logs", -60)  # however long that took, all of it is recent
    stream = follow(fleet, trigger)
    batches = [stream.read() for _ in range(4)]
    assert [len(told(each)) for each in batches] == [200, 200, 50, 0]
    assert [each.more for each in batches] == [True, True, False, False]
    written = [each.data for batch in batches for each in batch.events if each.name == "log"]
    seen = [(each.server_id, each.offset) for each in written]
    for each in running:
        assert [offset for id, offset in seen if id == each.server_id] == list(range(150))
    # As long as something older may appear, whoever asks again is told all of this again; then no more.
    assert {number for batch in batches for number in floors(batch)} == {0}
    age(heat.store, "logs", 71)
    old = follow(fleet, trigger).read()
    assert floors(old) == [each.data.seq for each in old.events if each.name == "log"]
    assert len(told(follow(fleet, trigger, ids(old)[99]).read())) == 200


def test_a_stream_with_output_sends_no_target_twice(heat, fleet, follow):
    trigger, (one, other) = begun(fleet, 2)
    heat.store.write(writing(one, b"one"))
    fleet.end(one)
    first = follow(fleet, trigger).read()
    heat.store.write(writing(other, b"other"))
    again = follow(fleet, trigger, first.events[-1].id).read()
    assert (positions(again), "other" in told(again)) == ([1], True)


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """The numbers of targets that streams read, in pages of ten."""
    numbers: list[int] = []
    list_changed = targets.list_changed

    def count(*args):
        numbers.append(len(changed := list_changed(*args)))
        return changed

    monkeypatch.setattr(trigger_events.targets, "list_changed", count)
    monkeypatch.setattr(trigger_events, "MOST_TARGETS", 10)
    return numbers


def positions(batch) -> list[int]:
    return [event.data.position for event in batch.events if event.name == "target"]


def test_a_stream_reads_the_targets_in_pages_and_then_what_has_changed(heat, fleet, follow, reads):
    trigger = fleet.trigger_over(25, max_concurrent=3)
    stream = follow(fleet, trigger)
    batches = [stream.read() for _ in range(3)]
    assert [batch.more for batch in batches] == [True, True, False]
    assert sorted(position for batch in batches for position in positions(batch)) == list(range(25))
    assert reads == [10, 10, 5]
    assert (stream.read().events, reads.pop()) == ([], 0)

    first, second, _ = fleet.running(trigger)
    for deployment in (first, second):
        heat.store.write(writing(deployment, b"last"))
        fleet.end(deployment)
    batch = stream.read()
    assert (positions(batch), told(batch)) == ([0, 1, 3, 4], ["last", "last"])
    assert reads.pop() == 4

    fleet.cancel(trigger)
    batches = [stream.read() for _ in range(3)]
    cancelled = [event.data for batch in batches for event in batch.events if event.name == "target"]
    assert sorted(target.position for target in cancelled) == list(range(2, 25))
    assert {target.status for target in cancelled} == {"CANCELLED"}
    assert [batch.over for batch in batches] == [False, False, True]


def test_a_target_whose_deployment_is_deleted_is_an_event(heat, fleet, follow, reads):
    trigger, (one, _) = begun(fleet, 2)
    stream = follow(fleet, trigger)
    stream.read()
    fleet.end(one)
    assert positions(stream.read()) == [0]
    fleet.do(service.remove, one)
    (event,) = stream.read().events
    assert (event.data.position, event.data.deployment_id) == (0, None)


def test_an_unresponsive_server_is_reported_once(heat, fleet, follow, monkeypatch):
    trigger, (one,) = begun(fleet, 1)
    said = {"server_id": one.server_id, "config_id": one.config_id}
    heat.store.write(lambda tx: runs.heartbeat(tx, **said))
    stream = follow(fleet, trigger)
    assert [each.name for each in stream.read().events] == ["target", "trigger"]
    age(heat.store, "deployments", 46)
    (silent,) = stream.read().events
    assert silent.data.run.state == "UNRESPONSIVE"
    assert silent.data.run.unresponsive_seconds >= 46
    with monkeypatch.context() as later:
        Clock(datetime.now(UTC) + timedelta(seconds=5), later)
        assert stream.read().events == []
    heat.store.write(lambda tx: runs.progress(tx, **said, percent=50, message="so far"))
    (heard,) = stream.read().events
    assert (heard.data.run.state, heard.data.run.unresponsive_seconds) == ("RUNNING", None)
    assert (heard.data.run.percent, heard.data.run.message) == (50, "so far")


@ON_POSTGRESQL
def test_a_retry_during_the_deletion_finds_nothing(heat, store, tmp_path):
    inside = Inside(tmp_path, Store(store.url, keys=databases.keys))
    fleet = Fleet(replace(heat, project=inside.project))
    trigger, (one,) = begun(fleet, 1)
    fleet.end(one, 1)
    deleting = HeldWrite(
        store, lambda tx: lifecycle.delete(tx, fleet.world.engine.env, triggers.get(tx, trigger.id, for_update=True))
    )
    path = f"/v1/{fleet.world.project}/software_triggers/{trigger.id}/retry"
    answers: list[int] = []
    asking = threading.Thread(
        target=lambda: answers.append(inside.client.post(path, json={}, headers=inside.headers).status_code)
    )
    asking.start()
    until_blocked(store, lambda: not asking.is_alive())
    deleting.commit()
    asking.join()
    assert answers == [404]
    inside.close()
    inside.store.close()


def test_a_read_costs_as_much_as_what_was_notified(fleet, follow):
    """Otherwise each report of one of many servers would read the runs and the output of all."""
    trigger, deployments_ = begun(fleet, 20)
    feed = follow(fleet, trigger)
    assert len([event for event in feed.read().events if event.name == "target"]) == 20
    first, second = deployments_[:2]
    for deployment in (first, second):
        fleet.world.store.write(writing(deployment, b"out"))
    compared = []
    compare = feed.reader._compare
    feed.reader._compare = lambda tx, some: compared.extend(some) or compare(tx, some)
    batch = feed.read({deployment_topic(first.id)})
    assert (told(batch), {target.deployment_id for target in compared}) == (["out"], {first.id})
    assert told(feed.read(set())) == []
    assert told(feed.read({ALL})) == ["out"], "what was not notified is found by the next full read"
