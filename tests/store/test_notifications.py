"""Notifications between processes on one PostgreSQL: nothing that is committed leaves another process outdated."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from itertools import pairwise

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from stoker.model.errors import Unavailable
from stoker.store import documents, notifications, pipeline
from stoker.store.notifications import PAYLOAD_BYTES, NotificationSender, encode
from stoker.store.notifier import ALL, server_topic
from stoker.store.open import Store
from support import databases, query
from support.notifications import Notified

pytestmark = pytest.mark.slow


@pytest.fixture
def url(postgresql_server) -> Iterator[str]:
    with databases.postgresql_url(postgresql_server) as found:
        yield found


@pytest.fixture
def open_store(url) -> Iterator[Callable[[], Store]]:
    """Opens a store as a process does; all are closed in the end."""
    with ExitStack() as stores:
        yield lambda: stores.enter_context(closing(Store(url)))


@pytest.fixture
def neighbors(open_store) -> tuple[Store, Store]:
    """Two processes' stores on one database, which listen already."""
    stores = open_store(), open_store()
    for store in stores:
        notified = Notified(store)
        store.start_listener()
        notified.wait((ALL, 0))
    return stores


@pytest.fixture
def hurried(monkeypatch) -> None:
    """Processes count as gone soon; not so soon that a slow machine takes one for gone that is there."""
    monkeypatch.setattr(notifications, "HEARTBEAT", 0.1)
    monkeypatch.setattr(notifications, "GONE", 2.0)
    monkeypatch.setattr(notifications, "_TICK", 0.1)


_BREAK = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = :name AND datname = current_database()"
)


def break_connections(store: Store, name: str) -> int:
    with store.read() as tx:
        return len(query.rows(tx, _BREAK, name=f"stoker {name}"))


def test_each_subscriber_is_notified_once_of_a_commit(neighbors):
    here, there = neighbors
    own, others = Notified(here), Notified(there)
    here.write(lambda tx: [tx.bump_document("server"), tx.notify("topic")])
    with here.read() as tx:
        revision = documents.revision(tx, "server")
    changes = [("topic", 0), (server_topic("server"), revision)]
    for notified in (own, others):
        for change in changes:
            notified.wait(change)
    there.write(lambda tx: tx.notify("fence"))  # after what came back
    for notified in (own, others):
        notified.wait(("fence", 0))
        # Some seconds after the start of a listener, there is one more ALL.
        assert sorted(change for change in notified.all if change[0] != ALL) == sorted([*changes, ("fence", 0)])


def test_a_busy_process_pauses_between_two_sendings(neighbors, monkeypatch):
    """What is committed during a pause is sent together."""
    here, there = neighbors
    begun: list[float] = []

    def record(sender, changes, encode=notifications.encode, **more):
        begun.extend([time.monotonic()] if changes else [])
        return encode(sender, changes, **more)

    monkeypatch.setattr(notifications, "encode", record)
    monkeypatch.setattr(notifications, "PAUSE", 0.05)
    notified = Notified(there)
    for number in range(10):
        here.write(lambda tx, number=number: tx.notify(f"topic {number}"))
        notified.wait((f"topic {number}", 0))
    assert len(begun) == 10
    assert min(after - before for before, after in pairwise(begun)) >= 0.05


@pytest.mark.parametrize("id", ["web 1", "a=1", " ", "ä\n\t\"'\\", "🐘" * 36, "\ud800", "x" * 20_000, "*"])
def test_server_ids_with_any_characters_are_notified(neighbors, id):
    here, there = neighbors
    notified = Notified(there)
    here.write(lambda tx: tx.notify(server_topic(id)))
    here.write(lambda tx: tx.notify("after"))
    notified.wait(("after", 0))
    expected = (server_topic(id), 0) if len(id) < PAYLOAD_BYTES else (ALL, 0)
    assert notified.all[:-1] == [expected]


@given(st.dictionaries(st.text(max_size=300), st.integers(0, 2**63), max_size=60), st.booleans())
def test_payloads_are_small_and_complete(changes, leaves):
    payloads = list(encode("f" * 16, changes, leaves=leaves))
    assert all(len(payload.encode()) <= PAYLOAD_BYTES for payload in payloads)
    decoded = [json.loads(payload) for payload in payloads]
    assert {topic: number for each in decoded for topic, number in each["changes"]} == changes
    assert {each["leaves"] for each in decoded} == {leaves}


@pytest.mark.parametrize("name", ["listener", "sender"])
def test_a_broken_connection_is_replaced_and_no_cache_stays_outdated(neighbors, name):
    here, there = neighbors
    notified = Notified(there)
    assert break_connections(here, name) == 2
    here.write(lambda tx: tx.notify("topic"))
    notified.wait(("topic", 0) if name == "sender" else (ALL, 0))
    here.write(lambda tx: tx.notify("after"))
    notified.wait(("after", 0))
    notified.wait_for(lambda: not any(problem_of(store) for store in neighbors))


def test_a_new_connection_first_sends_the_changes_that_wait(url):
    """A heartbeat before them would hide a sender whose connections are all lost before it sends a change."""
    with psycopg.connect(pipeline.conninfo(url), autocommit=True) as listener:
        listener.execute("LISTEN stoker")
        store = Store(url)
        store.write(lambda tx: tx.notify("topic"))  # starts the sender
        (first,) = listener.notifies(timeout=60, stop_after=1)
        store.close()
    assert json.loads(first.payload)["changes"] == [["topic", 0]]


def test_a_process_is_healthy_from_its_start_on(open_store, monkeypatch):
    monkeypatch.setattr(notifications, "_START", 60.0)
    store = open_store()
    store.start_listener()
    store.check_notifications()


def test_a_subscriber_that_fails_learns_of_any_change_and_affects_no_other_and_no_transaction(neighbors):
    here, there = neighbors
    calls: list[tuple[str, int]] = []

    def fail(notifications: Mapping[str, int]) -> None:
        if "bad" in notifications:
            raise ZeroDivisionError

    here.notifier.subscribe(fail)
    there.notifier.subscribe(lambda notifications: calls.extend(notifications.items()) or fail(notifications))
    notified = Notified(there)
    here.write(lambda tx: tx.notify("bad"))
    notified.wait(("bad", 0))
    assert calls[calls.index(("bad", 0)) + 1] == (ALL, 0)
    here.write(lambda tx: tx.notify("good"))
    notified.wait(("good", 0))


@pytest.mark.parametrize(
    "payload", ["s/web 1=1", "", "[]", '{"from": "x"}', '{"from":"x","leaves":false,"changes":[1]}']
)
def test_a_payload_of_another_program_counts_as_a_change_of_everything(neighbors, payload):
    here, there = neighbors
    notified = Notified(there)
    with here.session() as connection:
        connection.execute("SELECT pg_notify('stoker', %s)", [payload])
    notified.wait((ALL, 0))
    here.write(lambda tx: tx.notify("after"))
    notified.wait(("after", 0))


def test_a_process_killed_before_it_notifies_leaves_no_cache_outdated(open_store, hurried):
    """It committed, and its sender never sends: each process that knew of it takes everything as changed."""
    killed, there = open_store(), open_store()
    notified = Notified(there)
    there.start_listener()
    killed.start_listener()
    # Both were there for long: the listener has said ALL for its start and once more.
    notified.wait_for(lambda: notified.all.count((ALL, 0)) == 2)
    stop_sender(killed.notifications.sender)
    killed.write(lambda tx: tx.bump_document("server"))
    notified.wait_for(lambda: notified.all.count((ALL, 0)) == 3)
    assert server_topic("server") not in dict(notified.all)


def stop_sender(sender: NotificationSender) -> None:
    """As kill -9 does: nothing more goes out, not even that it leaves."""
    sender._send_pending = lambda *_: sender._stopping  # type: ignore[method-assign]  # its thread goes on


def test_a_process_that_stops_regularly_clears_no_cache(open_store, hurried):
    stopped, killed, there = (open_store() for _ in range(3))
    notified = Notified(there)
    for store in (there, stopped, killed):
        store.start_listener()
    notified.wait_for(lambda: notified.all.count((ALL, 0)) == 2)
    with capture_logs() as entries:
        stopped.write(lambda tx: tx.notify("last"))
        stopped.close()
        notified.wait(("last", 0))
        killed.write(lambda tx: tx.notify("later"))
        notified.wait(("later", 0))
        stop_sender(killed.notifications.sender)
        # The fence: the loss of a process that sent later is noticed.
        notified.wait_for(lambda: killed.notifications.sender.id in lost_senders(entries))
    assert lost_senders(entries) == [killed.notifications.sender.id]
    assert notified.all.count((ALL, 0)) == 3


def lost_senders(entries: list) -> list[str]:
    return [entry["sender"] for entry in list(entries) if entry["event"] == "notification_sender.lost"]


def test_a_program_that_only_writes_notifies_before_it_ends(open_store):
    serving, program = open_store(), open_store()
    notified = Notified(serving)
    serving.start_listener()
    notified.wait((ALL, 0))
    program.write(lambda tx: tx.notify("topic"))
    program.close()
    notified.wait(("topic", 0))


def problem_of(store: Store) -> str:
    try:
        store.check_notifications()
    except Unavailable as error:
        return error.message
    return ""


def test_a_listener_reports_a_lost_database_and_recovers(url, open_store, postgresql_server):
    store = open_store()
    notified = Notified(store)
    store.start_listener()
    notified.wait((ALL, 0))
    name = databases.name_of(url)
    with psycopg.connect(pipeline.conninfo(postgresql_server), autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        notified.wait_for(lambda: "listener" in problem_of(store) and "sender" in problem_of(store))
        admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
    notified.wait_for(lambda: not problem_of(store))
    notified.wait_for(lambda: notified.all.count((ALL, 0)) >= 2)
