"""What every engine of the notifier guarantees, and what the loss of NATS costs."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest

from stoker.store import nats_notifications, notifications
from stoker.store.notifications import PAYLOAD_BYTES
from stoker.store.notifier import ALL, server_topic
from stoker.store.open import Store
from stoker.store.tx import Tx
from support import databases
from support.faulty_line import faulty_line
from support.nats import NatsServer
from support.notifications import Notified

pytestmark = pytest.mark.slow

#: Two stores as two processes have them. In one process, both are the same.
Stores = tuple[Store, Store]


@pytest.fixture(scope="module")
def nats() -> Iterator[NatsServer]:
    server = NatsServer.create()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def own_nats() -> Iterator[NatsServer]:
    """A server that the test may stop."""
    server = NatsServer.create()
    server.start()
    yield server
    server.stop()


@pytest.fixture(params=["in process", "postgresql", "nats"])
def stores(request, tmp_path, sqlite_template) -> Iterator[Stores]:
    with ExitStack() as cleanup:
        if request.param == "in process":
            store = Store(databases.sqlite_url(tmp_path, sqlite_template))
            cleanup.callback(store.close)
            store.start_listener()
            yield store, store
            return
        url = cleanup.enter_context(databases.postgresql_url(request.getfixturevalue("postgresql_server")))
        nats_url = request.getfixturevalue("nats").url if request.param == "nats" else ""
        yield open_two(cleanup, url, nats_url)


@pytest.fixture
def by_nats(own_nats, postgresql_server) -> Iterator[Stores]:
    with ExitStack() as cleanup:
        url = cleanup.enter_context(databases.postgresql_url(postgresql_server))
        yield open_two(cleanup, url, own_nats.url)


def open_two(cleanup: ExitStack, url: str, nats_url: str) -> Stores:
    """Open two stores whose engines work. With NATS, PostgreSQL carries no changes any more."""
    here, there = Store(url, nats_url=nats_url), Store(url, nats_url=nats_url)
    for store in (here, there):
        cleanup.callback(store.close)
        store.start_listener()
    until_connected(here, there)
    return here, there


def changes(notified: Notified) -> list[tuple[str, int]]:
    """All but ``ALL``, of which there is one more some seconds after the start of a listener."""
    return [notification for notification in notified.all if notification[0] != ALL]


def until_connected(*stores: Store) -> None:
    for store in stores:
        Notified(store).wait_for(lambda store=store: not any(store.notifier_problems().values()))
        if "nats" in store.notifier_problems():
            listener = store.notifications.postgresql.listener
            Notified(store).wait_for(lambda listener=listener: not listener.has_others_without_nats)


def without_postgresql(store: Store, monkeypatch) -> None:
    """Let a change that the store sends by PostgreSQL fail the test."""

    def fail(changes) -> None:
        raise AssertionError(f"sent by PostgreSQL: {changes}")

    monkeypatch.setattr(store.notifications.postgresql, "send", fail)


def test_each_subscriber_is_notified_once_of_a_commit(stores):
    here, there = stores
    own, others = Notified(here), Notified(there)
    here.write(lambda tx: [tx.bump_document("server"), tx.notify("topic")])
    for notified in (own, others):
        notified.wait(("topic", 0))
        notified.wait((server_topic("server"), 1))
    there.write(lambda tx: tx.notify("fence"))  # after what came back
    for notified in (own, others):
        notified.wait(("fence", 0))
        assert sorted(changes(notified)) == sorted([("topic", 0), (server_topic("server"), 1), ("fence", 0)])


def test_a_rolled_back_transaction_sends_no_notification(stores):
    here, there = stores
    notified = Notified(there)

    def fails(tx: Tx) -> None:
        tx.notify("undone")
        tx.flush()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        here.write(fails)
    here.write(lambda tx: tx.notify("done"))
    notified.wait(("done", 0))
    assert changes(notified) == [("done", 0)]


def test_any_number_of_topics_with_any_characters_arrives(stores):
    here, there = stores
    notified = Notified(there)
    topics = [server_topic(f"{'🐘' * 36} \n\t\"'\\{number}") for number in range(500)]
    assert len("".join(topics)) > PAYLOAD_BYTES
    here.write(lambda tx: [tx.notify(topic) for topic in topics] and None)
    for topic in topics:
        notified.wait((topic, 0))


def test_the_last_changes_are_sent_at_the_end(stores):
    here, there = stores
    notified = Notified(there)
    here.write(lambda tx: tx.notify("last"))
    if here is not there:
        here.close()
    notified.wait(("last", 0))


def test_a_busy_process_pauses_between_two_sendings(stores, monkeypatch):
    """What is committed during a pause is sent together."""
    here, there = stores
    if here is there:
        pytest.skip("the commit itself calls the subscribers of its process")
    begun: list[float] = []
    for module in (notifications, nats_notifications):

        def record(sender, changes, encode=module.encode, **more):
            begun.extend([time.monotonic()] if changes else [])
            return encode(sender, changes, **more)

        monkeypatch.setattr(module, "encode", record)
        monkeypatch.setattr(module, "PAUSE", 0.05)
    notified = Notified(there)
    for number in range(10):
        here.write(lambda tx, number=number: tx.notify(f"topic {number}"))
        notified.wait((f"topic {number}", 0))
    assert len(begun) == 10
    assert min(after - before for before, after in pairwise(begun)) >= 0.05


def test_a_subscriber_that_fails_clears_the_caches_and_ends_nothing(stores):
    here, there = stores
    if here is there:
        pytest.skip("the commit itself calls the subscribers of its process")

    def fail(topic: str, _: int) -> None:
        if topic == "bad":
            raise ZeroDivisionError

    there.notifier.subscribe(fail)
    notified = Notified(there)
    here.write(lambda tx: tx.notify("bad"))
    notified.wait((ALL, 0))
    here.write(lambda tx: tx.notify("good"))
    # While an engine connects again, clearing the caches replaces what it misses.
    notified.wait_for(lambda: ("good", 0) in notified.all or notified.all.count((ALL, 0)) > 1)
    until_connected(here, there)
    here.write(lambda tx: tx.notify("later"))
    notified.wait(("later", 0))


def test_nats_carries_the_changes_and_postgresql_none(by_nats, monkeypatch):
    here, there = by_nats
    for store in by_nats:
        without_postgresql(store, monkeypatch)
    notified = Notified(there)
    here.write(lambda tx: tx.notify("topic"))
    notified.wait(("topic", 0))
    assert ("topic", 0) in notified.all
    monkeypatch.undo()


def test_a_process_without_nats_takes_part(by_nats):
    here, there = by_nats
    alone = Store(here.url)
    try:
        notified_alone, notified = Notified(alone), Notified(there)
        alone.start_listener()
        notified_alone.wait((ALL, 0))
        listener = here.notifications.postgresql.listener
        Notified(here).wait_for(lambda: listener.has_others_without_nats)
        here.write(lambda tx: tx.notify("to all"))
        notified_alone.wait(("to all", 0))
        notified.wait(("to all", 0))
        alone.write(lambda tx: tx.notify("from it"))
        notified.wait(("from it", 0))
    finally:
        alone.close()


def test_without_nats_postgresql_carries_the_changes(by_nats, own_nats, monkeypatch):
    here, there = by_nats
    notified = Notified(there)
    own_nats.stop()
    here.write(lambda tx: tx.notify("lost?"))
    notified.wait_for(lambda: bool({("lost?", 0), (ALL, 0)} & set(notified.all)))
    notified.wait_for(lambda: bool(here.notifier_problems()["nats"] and there.notifier_problems()["nats"]))
    here.check_notifications()  # the site is healthy
    here.write(lambda tx: tx.notify("meanwhile"))
    notified.wait(("meanwhile", 0))
    own_nats.start()
    until_connected(here, there)
    without_postgresql(here, monkeypatch)
    here.write(lambda tx: tx.notify("again"))
    notified.wait(("again", 0))
    monkeypatch.undo()


def test_changes_until_the_others_know_of_a_lost_nats_are_not_missed(own_nats, postgresql_server, monkeypatch):
    """One process loses NATS and cannot tell the others: what they send by NATS only meanwhile counts as changed."""
    monkeypatch.setattr(nats_notifications, "_SETTLE", 0.0)
    monkeypatch.setattr(notifications, "GONE", 600.0)  # only the loss of NATS clears caches
    with ExitStack() as cleanup:
        url = cleanup.enter_context(databases.postgresql_url(postgresql_server))
        line = cleanup.enter_context(faulty_line(own_nats.port))
        here, there = Store(url, nats_url=own_nats.url), Store(url, nats_url=line.url.replace("http", "nats"))
        for store in (here, there):
            cleanup.callback(store.close)
            store.start_listener()
            Notified(store).wait_for(lambda store=store: not any(store.notifier_problems().values()))
        listener = here.notifications.postgresql.listener
        listener._knows_others_at = 0.0  # as long after the start
        Notified(here).wait_for(lambda: not listener.has_others_without_nats)
        may_send = threading.Event()
        cleanup.callback(may_send.set)
        sender = there.notifications.postgresql.sender
        send = sender._send
        monkeypatch.setattr(sender, "_send", lambda *arguments: may_send.wait() and send(*arguments))
        notified = Notified(there)
        line.go()
        notified.wait((ALL, 0))
        here.write(lambda tx: tx.notify("missed"))
        cleared = notified.all.count((ALL, 0))
        may_send.set()
        notified.wait_for(lambda: notified.all.count((ALL, 0)) > cleared)
        assert ("missed", 0) not in notified.all


def test_a_nats_that_does_not_answer_counts_as_lost(by_nats, own_nats):
    here, there = by_nats
    notified = Notified(there)
    own_nats.suspend()
    here.write(lambda tx: tx.notify("topic"))
    notified.wait(("topic", 0))  # PostgreSQL sends what NATS does not confirm
    notified.wait((ALL, 0))  # what others sent meanwhile may be lost


def test_two_sites_on_one_nats_do_not_hear_each_other(by_nats, own_nats, postgresql_server):
    here, there = by_nats
    with ExitStack() as cleanup:
        url = cleanup.enter_context(databases.postgresql_url(postgresql_server))
        other, its_neighbour = open_two(cleanup, url, own_nats.url)
        notified, own = Notified(other), Notified(there)
        here.write(lambda tx: tx.notify("theirs"))
        own.wait(("theirs", 0))
        its_neighbour.write(lambda tx: tx.notify("ours"))
        notified.wait(("ours", 0))
        assert changes(notified) == [("ours", 0)]
