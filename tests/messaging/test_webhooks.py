"""Webhooks that hang, and what else there is to do."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.work import Work
from support.http_stub import Asked, Said, answering


def test_webhooks_that_hang_do_not_delay_other_jobs(store, monkeypatch):
    monkeypatch.setattr(webhooks, "_PATIENCE", 60.0)
    called, released, other = threading.Semaphore(0), threading.Event(), threading.Event()

    def hang(_: Asked) -> Said:
        called.release()
        released.wait(60)
        return Said()

    work = Work(store)
    targets = Targets.of("127.0.0.0/8")
    webhooks.register(store, work, targets)
    work.register("other", lambda _: other.set())
    messaging = Messaging(work, SubscriptionService(targets), SignedUrls(b"secret"))
    work.start()

    def subscribe(tx, url: str) -> None:
        queue = messaging.lock_or_create(tx, "project", "q")
        for n in range(20):
            messaging.subscriptions.subscribe(tx, queue, {"subscriber": f"{url}/{n}"})
        messaging.post(tx, "project", "q", [1])

    with ExitStack() as cleanup:
        hook = cleanup.enter_context(answering(hang))
        cleanup.callback(work.stop)
        cleanup.callback(released.set)
        store.write(lambda tx: subscribe(tx, hook.url))
        assert all(called.acquire(timeout=60) for _ in range(2))
        store.write(lambda tx: work.defer(tx, "other", "key", {}))
        assert other.wait(60)
        assert not released.is_set()
        released.set()
        assert all(called.acquire(timeout=60) for _ in range(18))
