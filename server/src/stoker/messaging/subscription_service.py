"""Subscriptions: webhooks that receive a queue's messages for a limited time."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from stoker.messaging import limits, webhooks
from stoker.messaging.signed_urls import SignedUrls
from stoker.messaging.targets import Targets
from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.model.messaging import Queue, Subscription
from stoker.store import subscriptions
from stoker.store.tx import Tx
from stoker.work import Work

_TAKEN = "the queue {!r} already has a subscription of this subscriber"
#: Characters allowed in a header's name and in its value.
_HEADER_NAME, _HEADER_VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), re.compile(r"[ -~]*")


class SubscriptionService:
    """
    Creates, changes and confirms subscriptions.

    With ``confirming``, a subscriber first receives a request for confirmation, and messages only after it has
    confirmed.
    """

    def __init__(
        self, work: Work, signed_urls: SignedUrls, public_url: str, targets: Targets, *, confirming: bool
    ) -> None:
        self._work = work
        self._signed_urls = signed_urls
        self._public_url = public_url
        self._targets = targets
        self.confirming = confirming

    def check(self, body: Any) -> None:
        """
        Check a request body, and resolve and check the name of the host. Raises Invalid.

        A look-up takes time, so it must not happen in a transaction.
        """
        subscriber = _check_body(body, self._targets)[0]
        if subscriber is not None:
            self._targets.check(_host(subscriber))

    def subscribe(self, tx: Tx, queue: Queue, body: Any) -> str:
        """
        Create a subscription. Returns its id.

        A repeated request for an unconfirmed subscription sends the request for confirmation again. Raises Invalid, and
        Conflict if the subscription exists with another ttl or other options, or is confirmed.
        """
        subscriber, ttl, options = _check_body(body, self._targets)
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
            existing = subscriptions.of_subscriber(tx, queue.id, subscriber)
            if existing is None or existing.confirmed or (existing.ttl, existing.options) != (new.ttl, new.options):
                raise Conflict(_TAKEN.format(queue.name))
            new = existing
        self._ask(tx, queue, new)
        return new.id

    def change(self, tx: Tx, queue: Queue, id: str, body: Any) -> None:
        """
        Change a subscription. Raises EntityNotFound, Invalid, and Conflict if the queue has the new subscriber already.
        """
        subscriber, ttl, options = _check_body(body, self._targets)
        if subscriber is None and ttl is None and options is None:
            raise Invalid("nothing to change: give a subscriber, a ttl or options")
        old = find(tx, queue, id, for_update=True)
        changed = replace(old, subscriber=subscriber or old.subscriber)
        if options is not None:
            changed = replace(changed, options=options)
        if ttl is not None:
            changed = replace(changed, ttl=ttl, renewed_at=tx.now, expires_at=tx.now + timedelta(seconds=ttl))
        if changed.subscriber != old.subscriber:
            subscriptions.trim(tx, queue.id, changed.subscriber)
            if subscriptions.of_subscriber(tx, queue.id, changed.subscriber) is not None:
                raise Conflict(_TAKEN.format(queue.name))
            # The confirmation came from the previous subscriber.
            changed = replace(changed, confirmed=False)
        subscriptions.save(tx, changed)
        if changed.subscriber != old.subscriber:
            self._ask(tx, queue, changed)

    def confirm(self, tx: Tx, queue: Queue, id: str, *, confirmed: bool) -> None:
        """Confirm a subscription, or withdraw the confirmation. Raises EntityNotFound."""
        old = find(tx, queue, id, for_update=True)
        subscriptions.save(tx, replace(old, confirmed=confirmed))
        if not confirmed:
            self._ask(tx, queue, old, again=True)

    def _ask(self, tx: Tx, queue: Queue, subscription: Subscription, *, again: bool = False) -> None:
        """Send the request for confirmation, in Zaqar's format."""
        if not self.confirming:
            return
        path = f"/v2/queues/{queue.name}/subscriptions/{subscription.id}/confirm"
        signed = self._signed_urls.sign(queue.project_id, [path], ["PUT"], subscription.expires_at)
        text = f"Messages of the queue {queue.name} will be sent here: confirm to receive them"
        if again:
            text = f"Messages of the queue {queue.name} are no longer sent here: confirm to receive them again"
        message = {
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
        webhooks.deliver(tx, self._work, queue.project_id, subscription, message)


def find(tx: Tx, queue: Queue, id: str, *, for_update: bool = False) -> Subscription:
    """Raises EntityNotFound if the subscription does not exist or has expired."""
    subscription = subscriptions.find(tx, queue.id, id, for_update=for_update)
    if subscription is None:
        raise EntityNotFound(f"there is no subscription {id!r:.100} to the queue {queue.name!r}, or it has ended")
    return subscription


def _check_body(body: Any, targets: Targets) -> tuple[str | None, int | None, dict[str, Any] | None]:
    """Read (subscriber, ttl, options) from a request body; None for each missing value. Raises Invalid."""
    fields = limits.check_mapping(body, "a subscription")
    subscriber, ttl, options = fields.get("subscriber"), fields.get("ttl"), fields.get("options")
    if subscriber is not None:
        targets.check_literal(_host(subscriber))
    if ttl is not None:
        limits.check_whole(ttl, "a subscription's ttl", limits.SHORTEST_SUBSCRIPTION, limits.LONGEST_SUBSCRIPTION)
    if options is not None:
        _check_options(limits.check_mapping(options, "a subscription's options"))
    return subscriber, ttl, options


def _host(subscriber: Any) -> str:
    """The host of a subscriber's URL. Raises Invalid."""
    if not isinstance(subscriber, str) or len(subscriber) > limits.SUBSCRIBER:
        raise Invalid(f"a subscriber must be a URL of at most {limits.SUBSCRIBER} characters")
    scheme = subscriber.partition(":")[0].lower()
    if scheme == "mailto":
        raise Invalid("subscribers by mail are not supported: give an http or https URL")
    if scheme in ("trust+http", "trust+https"):
        raise Invalid("subscribers with a trust are not supported: give an http or https URL")
    try:
        # Parsed like the HTTP client does, so that the checked host is the host that is called.
        url = urlsplit(subscriber)
        plain = scheme in ("http", "https") and re.fullmatch("[!-~]+", subscriber) is not None
        host = url.hostname if plain and url.port != 0 else None
    except ValueError:
        host = None
    if not host:
        raise Invalid(f"a subscriber must be an http or https URL of ASCII characters, not {subscriber!r:.100}")
    return host


def _check_options(options: Mapping[str, Any]) -> None:
    if not isinstance(options.get("post_data", ""), str):
        raise Invalid("options: post_data must be a string")
    headers = limits.check_mapping(options.get("post_headers", {}), "options: post_headers")
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not isinstance(value, str) or not _HEADER_VALUE.fullmatch(value):
            raise Invalid(f"options: post_headers: {name!r:.100} is no header with a value of printable ASCII")
