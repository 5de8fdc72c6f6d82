"""Who is told of a queue's messages: webhooks, each for a while."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from stoker.messaging import checks, limits, retrying, webhooks
from stoker.messaging.metadata import RETRIES
from stoker.messaging.signed_urls import SignedUrls
from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.model.messaging import Queue, Subscription
from stoker.store import subscriptions
from stoker.store.tx import Tx
from stoker.work import Work

_TAKEN = "the queue {!r} has that subscriber already: a subscription is one of project, queue and subscriber"
#: What may stand in a header's name and in its value.
_HEADER_NAME, _HEADER_VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), re.compile(r"[ -~]*")


class Subscribing:
    """``confirming``: who is to be told must agree to it first, and gets a message to do so."""

    def __init__(self, work: Work, signed_urls: SignedUrls, public_url: str, *, confirming: bool) -> None:
        self._work = work
        self._signed_urls = signed_urls
        self._public_url = public_url
        self.confirming = confirming

    def subscribe(self, tx: Tx, queue: Queue, said: Any) -> str:
        """
        The subscription's id. Raises Invalid, and Conflict when the queue has that subscriber with another ttl or
        options, or has it confirmed. Asking again for one that waits to be confirmed has it asked again.
        """
        subscriber, ttl, options = checked(said)
        if subscriber is None:
            raise Invalid("a subscription needs a subscriber: an http or https URL")
        ttl = limits.SUBSCRIPTION_TTL if ttl is None else ttl
        new = Subscription(
            id=str(uuid.uuid4()),
            queue_id=queue.id,
            subscriber=subscriber,
            ttl=ttl,
            options=options or {},
            confirmed=False,
            renewed_at=tx.now,
            expires_at=tx.now + timedelta(seconds=ttl),
        )
        subscriptions.trim(tx, queue.id, subscriber)
        if not subscriptions.add(tx, new):
            known = subscriptions.of_subscriber(tx, queue.id, subscriber)
            if known is None or known.confirmed or (known.ttl, known.options) != (new.ttl, new.options):
                raise Conflict(_TAKEN.format(queue.name))
            new = known
        self._ask(tx, queue, new)
        return new.id

    def change(self, tx: Tx, queue: Queue, id: str, said: Any) -> None:
        """Raises EntityNotFound, Invalid, and Conflict for a subscriber that the queue has."""
        subscriber, ttl, options = checked(said)
        if subscriber is None and ttl is None and options is None:
            raise Invalid("nothing to change: say a subscriber, a ttl or options")
        old = found(tx, queue, id, hold=True)
        changed = replace(old, subscriber=subscriber or old.subscriber)
        if options is not None:
            changed = replace(changed, options=options)
        if ttl is not None:
            changed = replace(changed, ttl=ttl, renewed_at=tx.now, expires_at=tx.now + timedelta(seconds=ttl))
        if changed.subscriber != old.subscriber:
            subscriptions.trim(tx, queue.id, changed.subscriber)
            if subscriptions.of_subscriber(tx, queue.id, changed.subscriber) is not None:
                raise Conflict(_TAKEN.format(queue.name))
            # It was another who agreed.
            changed = replace(changed, confirmed=False)
        subscriptions.save(tx, changed)
        if changed.subscriber != old.subscriber:
            self._ask(tx, queue, changed)

    def confirm(self, tx: Tx, queue: Queue, id: str, said: Any) -> None:
        """Agree to be told, or no more. Raises EntityNotFound, Invalid."""
        agreed = checks.mapping(said, "the request's body").get("confirmed")
        if not isinstance(agreed, bool):
            raise Invalid(f"confirmed must be true or false, not {agreed!r:.100}")
        old = found(tx, queue, id, hold=True)
        subscriptions.save(tx, replace(old, confirmed=agreed))
        if not agreed:
            self._ask(tx, queue, old, again=True)

    def _ask(self, tx: Tx, queue: Queue, subscription: Subscription, *, again: bool = False) -> None:
        """Send them what they need to agree, in Zaqar's words for it."""
        if not self.confirming:
            return
        path = f"/v2/queues/{queue.name}/subscriptions/{subscription.id}/confirm"
        signed = self._signed_urls.sign(queue.project_id, [path], ["PUT"], subscription.expires_at)
        text = f"Messages of the queue {queue.name} are to be sent here: confirm it to get them"
        if again:
            text = f"Messages of the queue {queue.name} are sent here no more: confirm it to get them again"
        said = {
            "Message_Type": "UnsubscribeConfirmation" if again else "SubscriptionConfirmation",
            "Message": text,
            "WSGISubscribeURL": f"{self._public_url}/messaging{path}",
            "URL-Signature": signed.signature,
            "URL-Methods": signed.methods[0],
            "URL-Paths": signed.paths[0],
            "X-Project-ID": signed.project,
            "URL-Expires": signed.expires,
            "SubscribeBody": {"confirmed": True},
            "UnsubscribeBody": {"confirmed": False},
        }
        webhooks.deliver(tx, self._work, subscription, said)


def found(tx: Tx, queue: Queue, id: str, *, hold: bool = False) -> Subscription:
    """Raises EntityNotFound, also for one that is over."""
    known = subscriptions.find(tx, queue.id, id, hold=hold)
    if known is None:
        raise EntityNotFound(f"there is no subscription {id!r:.100} to the queue {queue.name!r}, or it is over")
    return known


def age(subscription: Subscription, now: datetime) -> int:
    return int((now - subscription.renewed_at).total_seconds())


def checked(said: Any) -> tuple[str | None, int | None, dict[str, Any] | None]:
    """(subscriber, ttl, options) of a request; None for what it does not say. Raises Invalid."""
    document = checks.mapping(said, "a subscription")
    subscriber, ttl, options = document.get("subscriber"), document.get("ttl"), document.get("options")
    if subscriber is not None:
        _check_subscriber(subscriber)
    if ttl is not None:
        checks.whole(ttl, "a subscription's ttl", limits.SHORTEST_SUBSCRIPTION, limits.LONGEST_SUBSCRIPTION)
    if options is not None:
        _check_options(checks.mapping(options, "a subscription's options"))
    return subscriber, ttl, options


def _check_subscriber(subscriber: Any) -> None:
    if not isinstance(subscriber, str) or len(subscriber) > limits.SUBSCRIBER:
        raise Invalid(f"a subscriber must be a URL of at most {limits.SUBSCRIBER} characters")
    scheme = subscriber.partition(":")[0].lower()
    if scheme == "mailto":
        raise Invalid("subscribers by mail are not supported here: give an http or https URL")
    if scheme in ("trust+http", "trust+https"):
        raise Invalid("subscribers with a trust are not supported here: give an http or https URL")
    # Late: it costs start-up time that those without webhooks need not pay.
    import httpx2

    try:
        usable = (
            scheme in ("http", "https")
            and re.fullmatch("[!-~]+", subscriber) is not None
            and urlsplit(subscriber).port != 0
            and bool(httpx2.URL(subscriber).host)
        )
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        raise Invalid(f"a subscriber must be an http or https URL of ASCII characters, not {subscriber!r:.100}")


def _check_options(options: Mapping[str, Any]) -> None:
    if not isinstance(options.get("post_data", ""), str):
        raise Invalid("options: post_data must be a string")
    headers = checks.mapping(options.get("post_headers", {}), "options: post_headers")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise Invalid(f"options: post_headers: {name!r:.100} is no header with a value of printable ASCII")
    retrying.check(options.get(RETRIES), f"options: {RETRIES}")
