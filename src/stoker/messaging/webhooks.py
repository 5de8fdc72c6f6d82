"""
Subscribers are told by durable jobs: whatever was posted reaches them at least once, as long as they last.

A post defers one job, however many subscribers there are; that one defers a job for each of them. A webhook that fails
is tried again as its retry policy says, by a job of its own. No job holds a thread for long, and only so many threads
are ever held: webhooks that hang must not keep stacks waiting.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
import structlog

from stoker.messaging import metadata, retrying
from stoker.model.messaging import Message, Queue, Subscription
from stoker.store import rows, subscriptions
from stoker.store.open import Store
from stoker.store.tx import Tx
from stoker.work import Work

ANNOUNCE, DELIVER = "messaging-announce", "messaging-deliver"
#: Subscribers for whom one transaction defers jobs.
_AT_ONCE = 100
#: Webhooks under way at once: fewer than a process has threads for jobs.
_LANES = 2
#: Seconds that a webhook may take, and after which a job leaves the rest to another.
_PATIENCE = 5.0
_PLACE = '"$zaqar_message$"'
_log = structlog.get_logger("stoker.messaging")


def announce(tx: Tx, work: Work, queue: Queue, new: Sequence[Message], *, confirming: bool) -> None:
    """Have the subscribers that the queue has now told of what is posted in this transaction."""
    upto = subscriptions.latest(tx, queue.id, unconfirmed=not confirming)
    if upto is None:
        return
    said = [
        {
            "id": each.id,
            "body": msgspec.Raw(each.body.encode()),
            "ttl": each.ttl,
            "queue_name": queue.name,
            "Message_Type": "Notification",
        }
        for each in new
    ]
    # As text: PostgreSQL's own JSON holds no NUL character, and a message may.
    args = {"queue": queue.id, "messages": rows.dump(said), "after": 0, "upto": upto}
    work.defer(tx, ANNOUNCE, queue.id, args)


def deliver(tx: Tx, work: Work, subscription: Subscription, said: Mapping[str, Any]) -> None:
    """Have one subscriber told of one thing, confirmed or not."""
    args = {"subscription": subscription.id, "messages": rows.dump([said]), "failures": 0, "anyway": True}
    work.defer(tx, DELIVER, _lane(subscription.id), args)


def register(store: Store, work: Work, *, confirming: bool) -> None:
    """``confirming``: only those are told of messages who agreed to it."""
    webhooks = _Webhooks(store, work, confirming)
    work.register(ANNOUNCE, webhooks.announce)
    work.register(DELIVER, webhooks.deliver)


class _Webhooks:
    def __init__(self, store: Store, work: Work, confirming: bool) -> None:
        self._store = store
        self._work = work
        self._confirming = confirming
        self._client: Any = None

    def announce(self, args: Mapping[str, Any]) -> None:
        self._store.write(lambda tx: self._spread(tx, args))

    def deliver(self, args: Mapping[str, Any]) -> None:
        with self._store.read() as tx:
            found = subscriptions.with_queue(tx, args["subscription"])
        if found is None:
            return
        subscription, _, _, of_queue = found
        if self._confirming and not subscription.confirmed and not args.get("anyway"):
            return
        self._tell(subscription, of_queue, args)

    def _spread(self, tx: Tx, args: Mapping[str, Any]) -> None:
        found = subscriptions.ids(
            tx,
            args["queue"],
            after=args["after"],
            upto=args["upto"],
            limit=_AT_ONCE,
            unconfirmed=not self._confirming,
        )
        for _, id in found:
            said = {"subscription": id, "messages": args["messages"], "failures": 0}
            self._work.defer(tx, DELIVER, _lane(id), said)
        if len(found) == _AT_ONCE:
            self._work.defer(tx, ANNOUNCE, args["queue"], {**args, "after": found[-1][0]})

    def _tell(self, to: Subscription, of_queue: Mapping[str, Any], args: Mapping[str, Any]) -> None:
        left: list[Any] = rows.load(args["messages"])
        failures: int = args["failures"]
        policy = retrying.chosen(of_queue.get(metadata.RETRIES), to.options.get(metadata.RETRIES))
        until = time.monotonic() + _PATIENCE
        while left and time.monotonic() < until:
            problem = self._post(to, left[0])
            if problem is None:
                left, failures = left[1:], 0
                continue
            failures += 1
            wait = retrying.pause(policy, failures)
            if wait is not None:
                self._later(args, left, failures, wait)
                return
            _log.warning("gave a webhook's message up", subscription=to.id, failures=failures, problem=problem)
            left, failures = left[1:], 0
        if left:
            self._later(args, left, failures, 0.0)

    def _later(self, args: Mapping[str, Any], left: Sequence[Any], failures: int, seconds: float) -> None:
        said = {**args, "messages": rows.dump(left), "failures": failures}

        def do(tx: Tx) -> None:
            at = tx.now + timedelta(seconds=seconds)
            self._work.defer(tx, DELIVER, _lane(args["subscription"]), said, at=at)

        self._store.write(do)

    def _post(self, to: Subscription, message: Mapping[str, Any]) -> str | None:
        """What went wrong; None: they have it, or refused it for good."""
        # Late: it costs start-up time that those without webhooks need not pay.
        import httpx2

        if self._client is None:
            self._client = httpx2.Client(timeout=_PATIENCE)
        headers = {"Content-Type": "application/json", **to.options.get("post_headers", {})}
        try:
            with self._client.stream("POST", to.subscriber, content=_text(to, message), headers=headers) as answer:
                status: int = answer.status_code
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError) as error:
            return f"{type(error).__name__}: {error}"
        return None if status < 500 else f"it answered {status}"


def _lane(subscription_id: str) -> str:
    """Jobs of one key never overlap."""
    return f"lane-{zlib.crc32(subscription_id.encode()) % _LANES}"


def _text(to: Subscription, message: Mapping[str, Any]) -> bytes:
    said = rows.dump(message)
    form = to.options.get("post_data")
    return (said if form is None else form.replace(_PLACE, said)).encode()
