"""Subscriptions: webhooks that receive a queue's messages for a limited time."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlsplit

from msgspec import Meta, Struct
from msgspec.structs import replace

from stoker import json_values
from stoker.messaging import limits
from stoker.messaging.webhook_client import Targets
from stoker.model.embedded import Queue, Subscription
from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.store import queues
from stoker.store.tx import Tx

_TAKEN = "the queue {!r} already has a subscription of this subscriber"
#: Characters allowed in a header's name and in its value.
_HEADER_NAME, _HEADER_VALUE = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+"), re.compile(r"[ -~]*")


class SubscriptionRequest(Struct):
    """What a request says of a subscription; the service knows no member of ``options`` but those for webhooks."""

    subscriber: Annotated[str, Meta(max_length=limits.SUBSCRIBER)] | None = None
    ttl: Annotated[int, Meta(ge=limits.SHORTEST_SUBSCRIPTION, le=limits.LONGEST_SUBSCRIPTION)] | None = None
    options: dict[str, Any] | None = None


class _WebhookOptions(Struct):
    """The form of the requests that a subscriber receives."""

    post_data: str = ""
    post_headers: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class SubscriptionService:
    """Creates and changes subscriptions. ``targets``: where webhooks may go."""

    targets: Targets

    def check(self, body: Any) -> None:
        """
        Check a request body, and resolve and check the name of the host. Raises Invalid.

        A look-up takes time, so it must not happen in a transaction.
        """
        request = _read_request(body, self.targets)
        if request.subscriber is not None:
            self.targets.check(_host(request.subscriber))

    def subscribe(self, tx: Tx, queue: Queue, body: Any) -> str:
        """
        Create a subscription. Returns its id, also if the request is repeated.

        Raises Invalid, and Conflict if the subscription exists with another ttl or other options.
        """
        request = _read_request(body, self.targets)
        if request.subscriber is None:
            raise Invalid("a subscription needs a subscriber: an http or https URL")
        ttl = limits.SUBSCRIPTION_TTL if request.ttl is None else request.ttl
        new = Subscription(
            id=str(uuid.uuid4()),
            queue_id=queue.id,
            subscriber=request.subscriber,
            ttl=ttl,
            options=request.options or {},
            renewed_at=tx.now,
            expires_at=tx.now + timedelta(seconds=ttl),
        )
        queues.trim_subscriptions(tx, queue.id, new.subscriber)
        if not queues.add_subscription(tx, new):
            existing = queues.find_subscriber(tx, queue.id, new.subscriber)
            if existing is None or (existing.ttl, existing.options) != (new.ttl, new.options):
                raise Conflict(_TAKEN.format(queue.name))
            return existing.id
        return new.id

    def change(self, tx: Tx, queue: Queue, id: str, body: Any) -> None:
        """
        Change a subscription. Raises EntityNotFound, Invalid, and Conflict if the queue has the new subscriber already.
        """
        request = _read_request(body, self.targets)
        if request == SubscriptionRequest():
            raise Invalid("nothing to change: give a subscriber, a ttl or options")
        old = find(tx, queue, id, for_update=True)
        changed = replace(old, subscriber=request.subscriber or old.subscriber)
        if request.options is not None:
            changed = replace(changed, options=request.options)
        if (ttl := request.ttl) is not None:
            changed = replace(changed, ttl=ttl, renewed_at=tx.now, expires_at=tx.now + timedelta(seconds=ttl))
        if changed.subscriber != old.subscriber:
            queues.trim_subscriptions(tx, queue.id, changed.subscriber)
            if queues.find_subscriber(tx, queue.id, changed.subscriber) is not None:
                raise Conflict(_TAKEN.format(queue.name))
        queues.save_subscription(tx, changed)


def find(tx: Tx, queue: Queue, id: str, *, for_update: bool = False) -> Subscription:
    """Raises EntityNotFound if the subscription does not exist or has expired."""
    subscription = queues.find_subscription(tx, queue.id, id, for_update=for_update)
    if subscription is None:
        raise EntityNotFound(f"there is no subscription {id!r:.100} to the queue {queue.name!r}, or it has ended")
    return subscription


def _read_request(body: Any, targets: Targets) -> SubscriptionRequest:
    """Return the request for a subscription. Raises Invalid."""
    request = json_values.convert(body, SubscriptionRequest, "a subscription")
    if request.subscriber is not None:
        targets.check_literal(_host(request.subscriber))
    options = json_values.convert(request.options or {}, _WebhookOptions, "options")
    for name, value in options.post_headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(value):
            raise Invalid(f"options: post_headers: {name!r:.100} is no header with a value of printable ASCII")
    return request


def _host(subscriber: str) -> str:
    """The host of a subscriber's URL. Raises Invalid."""
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
