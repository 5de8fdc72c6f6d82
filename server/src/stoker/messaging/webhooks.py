"""
Durable jobs that deliver messages to subscribers, at least once while a subscription exists.

A post defers one job, however many subscribers there are; this job defers one job for each subscriber. A failed webhook
is retried by a job of its own. Deliveries have threads of their own, and at most two per
project at a time, so that webhooks that hang delay neither stacks nor other projects. After a slow failure a webhook is
paused: deliveries during the pause are deferred without a call.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import structlog

from stoker.bounded_dict import BoundedDict
from stoker.messaging.webhook_client import Targets, WebhookClient, WebhookFailed
from stoker.model.embedded import Message, Queue, Subscription
from stoker.store import queues, rows
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

ANNOUNCE, DELIVER = "messaging-announce", "messaging-deliver"
#: Subscribers for which one transaction defers jobs.
_AT_ONCE = 100
#: Maximum number of concurrent deliveries: per process and per project.
_THREADS, _LANES = 16, 2
#: Seconds that a delivery may take, and after which a job leaves its remaining messages to another job.
_PATIENCE = 5.0
#: Seconds that make a failure a slow one; seconds of the pause after it; maximum number of paused webhooks to remember.
_SLOW, _REST, _REMEMBERED = 1.0, 10.0, 10_000
#: Seconds before each repetition of a failed call, as Zaqar's default; afterwards the message is abandoned.
_PAUSES = (0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 30.0, 30.0)
_PLACE = '"$zaqar_message$"'
_log = structlog.get_logger("stoker.messaging")


def announce(tx: Tx, work: Work, queue: Queue, new: Sequence[Message]) -> None:
    """Schedule the delivery of the messages posted in this transaction to the queue's current subscribers."""
    upto = queues.latest_subscription(tx, queue.id)
    if upto is None:
        return
    payloads = [
        {
            "id": message.id,
            "body": msgspec.Raw(message.body.encode()),
            "ttl": message.ttl,
            "queue_name": queue.name,
            "Message_Type": "Notification",
        }
        for message in new
    ]
    # Stored as text, because PostgreSQL's JSON type cannot contain NUL characters.
    args = {"queue": queue.id, "project": queue.project_id, "messages": rows.dump(payloads), "after": 0, "upto": upto}
    work.defer(tx, ANNOUNCE, queue.id, args)


def register(store: Store, work: Work, targets: Targets) -> None:
    """Register the job handlers."""
    webhooks = _Webhooks(store, work, targets)
    work.register(ANNOUNCE, webhooks.announce)
    work.register(DELIVER, webhooks.deliver, threads=_THREADS)


class _Webhooks:
    def __init__(self, store: Store, work: Work, targets: Targets) -> None:
        self._store = store
        self._work = work
        self._targets = targets
        self._client: WebhookClient | None = None
        #: Subscription id → end of the pause on the monotonic clock.
        self._resting: BoundedDict[str, float] = BoundedDict(_REMEMBERED)

    def announce(self, args: Mapping[str, Any]) -> None:
        self._store.write(lambda tx: self._spread(tx, args))

    def deliver(self, args: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            row = queues.subscription_with_project(tx, args["subscription"])
        if row is None:
            return
        subscription, project_id = row
        rest = self._resting.get(subscription.id, 0.0) - time.monotonic()
        if rest > 0:
            self._later(args, project_id, rows.load(args["messages"]), args["failures"], rest)
            return
        self._deliver_all(subscription, project_id, args)

    def _spread(self, tx: Tx, args: Mapping[str, Any]) -> None:
        page = queues.subscription_ids(tx, args["queue"], args["after"], args["upto"], _AT_ONCE)
        for _, id in page:
            delivery = {"subscription": id, "messages": args["messages"], "failures": 0}
            self._work.defer(tx, DELIVER, _lane(args["project"], id), delivery)
        if len(page) == _AT_ONCE:
            self._work.defer(tx, ANNOUNCE, args["queue"], {**args, "after": page[-1][0]})

    def _deliver_all(self, to: Subscription, project_id: str, args: Mapping[str, Any]) -> None:
        left: list[Any] = rows.load(args["messages"])
        failures: int = args["failures"]
        until = time.monotonic() + _PATIENCE
        while left and time.monotonic() < until:
            problem = self._post(to, left[0])
            if problem is None:
                left, failures = left[1:], 0
                continue
            failures += 1
            if failures <= len(_PAUSES):
                self._later(args, project_id, left, failures, _PAUSES[failures - 1])
                return
            _log.warning("webhook.abandoned", subscription_id=to.id, failures=failures, error=problem)
            left, failures = left[1:], 0
        if left:
            self._later(args, project_id, left, failures, 0.0)

    def _later(
        self, args: Mapping[str, Any], project_id: str, left: Sequence[Any], failures: int, seconds: float
    ) -> None:
        delivery = {**args, "messages": rows.dump(left), "failures": failures}

        def do(tx: Tx) -> None:
            at = tx.now + timedelta(seconds=seconds)
            self._work.defer(tx, DELIVER, _lane(project_id, args["subscription"]), delivery, at=at)

        self._store.write(do)

    def _post(self, to: Subscription, message: Mapping[str, Any]) -> str | None:
        """Deliver one message. Returns the problem; None if the webhook accepted or permanently refused the message."""
        if self._client is None:
            # Created late, because loading the certificate authorities takes time.
            self._client = WebhookClient(self._targets, _PATIENCE, ssl.create_default_context())
        headers = {"Content-Type": "application/json", **to.options.get("post_headers", {})}
        begin = time.monotonic()
        try:
            status = self._client.post(to.subscriber, _text(to, message), headers)
        except WebhookFailed as error:
            if time.monotonic() - begin > _SLOW:
                self._resting.put(to.id, time.monotonic() + _REST)
            return str(error)
        return None if status < 500 else f"it answered {status}"


def _lane(project_id: str, subscription_id: str) -> str:
    """The job key: jobs of one key never overlap."""
    return f"{project_id}/{zlib.crc32(subscription_id.encode()) % _LANES}"


def _text(to: Subscription, message: Mapping[str, Any]) -> bytes:
    text = rows.dump(message)
    form = to.options.get("post_data")
    return (text if form is None else form.replace(_PLACE, text)).encode()
