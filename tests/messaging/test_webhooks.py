"""Webhooks that hang, and what else there is to do."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from stoker.messaging import Messaging, SignedUrls, webhooks
from stoker.messaging.subscription_service import SubscriptionService
from stoker.messaging.webhook_client import Targets
from stoker.work import Work
from support.http_stub import Asked, Said, answering


def test_webhooks_that_hang_delay_neither_other_jobs_nor_other_projects(store, monkeypatch):
    monkeypatch.setattr(webhooks, "_PATIENCE", 60.0)
    called, released = threading.Semaphore(0), threading.Event()
    other, told = threading.Event(), threading.Event()

    def hang(_: Asked) -> Said:
        called.release()
        released.wait(60)
        return Said()

    def tell(_: Asked) -> Said:
        told.set()
        return Said()

    work = Work(store)
    targets = Targets.of("127.0.0.0/8")
    webhooks.register(store, work, targets)
    work.register("other", lambda _: other.set())
    messaging = Messaging(work, SubscriptionService(targets), SignedUrls(b"secret"))
    work.start()

    def subscribe(tx, project: str, *urls: str) -> None:
        queue = messaging.lock_or_create(tx, project, "q")
        for url in urls:
            messaging.subscriptions.subscribe(tx, queue, {"subscriber": url})
        messaging.post(tx, project, "q", [1])

    with ExitStack() as cleanup:
        hook, listening = (cleanup.enter_context(answering(answer)) for answer in (hang, tell))
        cleanup.callback(work.stop)
        cleanup.callback(released.set)
        store.write(lambda tx: subscribe(tx, "project", *(f"{hook.url}/{n}" for n in range(20))))
        assert all(called.acquire(timeout=60) for _ in range(2))
        store.write(lambda tx: subscribe(tx, "another", listening.url))
        store.write(lambda tx: work.defer(tx, "other", "key", {}))
        assert other.wait(60)
        assert told.wait(60)
        assert not called.acquire(blocking=False), "two of a project at a time"
        released.set()
        assert all(called.acquire(timeout=60) for _ in range(18))
