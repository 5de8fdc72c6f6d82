"""What a notifier guarantees, within one process and between processes on PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest

from stoker.store import documents, notifications
from stoker.store.notifier import ALL, server_topic
from stoker.store.open import Store
from support import databases
from support.notifications import Notified

pytestmark = pytest.mark.slow

#: Two stores as two processes have them. In one process, both are the same.
Stores = tuple[Store, Store]


@pytest.fixture(params=["in process", "postgresql"])
def stores(request, tmp_path, sqlite_template) -> Iterator[Stores]:
    with ExitStack() as cleanup:
        if request.param == "in process":
            store = Store(databases.sqlite_url(tmp_path, sqlite_template))
            cleanup.callback(store.close)
            store.start_listener()
            yield store, store
            return
        url = cleanup.enter_context(databases.postgresql_url(request.getfixturevalue("postgresql_server")))
        here, there = Store(url), Store(url)
        for store in (here, there):
            cleanup.callback(store.close)
            store.start_listener()
        until_connected(here, there)
        yield here, there


def changes(notified: Notified) -> list[tuple[str, int]]:
    """All but ``ALL``, of which there is one more some seconds after the start of a listener."""
    return [notification for notification in notified.all if notification[0] != ALL]


def until_connected(*stores: Store) -> None:
    for store in stores:
        Notified(store).wait_for(lambda store=store: not any(store.notifier_problems().values()))


def test_each_subscriber_is_notified_once_of_a_commit(stores):
    here, there = stores
    own, others = Notified(here), Notified(there)
    here.write(lambda tx: [tx.bump_document("server"), tx.notify("topic")])
    with here.read() as tx:
        revision = documents.revision(tx, "server")
    for notified in (own, others):
        notified.wait(("topic", 0))
        notified.wait((server_topic("server"), revision))
    there.write(lambda tx: tx.notify("fence"))  # after what came back
    for notified in (own, others):
        notified.wait(("fence", 0))
        assert sorted(changes(notified)) == sorted([("topic", 0), (server_topic("server"), revision), ("fence", 0)])


def test_a_busy_process_pauses_between_two_sendings(stores, monkeypatch):
    """What is committed during a pause is sent together."""
    here, there = stores
    if here is there:
        pytest.skip("the commit itself calls the subscribers of its process")
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
