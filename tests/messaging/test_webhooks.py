"""Webhooks that hang, and what else there is to do."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from stoker.messaging import Messaging, webhooks
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.work import Work
from support.http_stub import Answering, Asked, Said


class Hanging(Answering):
    """A webhook that answers when it is let go."""

    def __init__(self) -> None:
        self.called, self.released = threading.Semaphore(0), threading.Event()
        super().__init__(self._wait)

    def _wait(self, _: Asked) -> Said:
        self.called.release()
        self.released.wait(60)
        return Said()


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    made = Hanging()
    yield made
    made.released.set()
    made.close()


def test_webhooks_that_hang_do_not_delay_other_jobs(store, hanging, monkeypatch):
    monkeypatch.setattr(webhooks, "_PATIENCE", 60.0)
    work = Work(store)
    other = threading.Event()
    targets = Targets.of("127.0.0.0/8")
    webhooks.register(store, work, targets)
    work.register("other", lambda _: other.set())
    messaging = Messaging(work, SubscriptionService(targets))
    work.start()
    try:

        def subscribed(tx) -> None:
            queue = messaging.lock_or_create(tx, "project", "q")
            for n in range(20):
                messaging.subscriptions.subscribe(tx, queue, {"subscriber": f"{hanging.url}/{n}"})
            messaging.post(tx, "project", "q", [1])

        store.write(subscribed)
        for _ in range(2):
            assert hanging.called.acquire(timeout=60)
        store.write(lambda tx: work.defer(tx, "other", "key", {}))
        assert other.wait(60)
        assert not hanging.released.is_set()
        hanging.released.set()
        for _ in range(18):
            assert hanging.called.acquire(timeout=60)
    finally:
        hanging.released.set()
        work.stop()
