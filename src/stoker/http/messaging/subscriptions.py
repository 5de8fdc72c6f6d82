"""/messaging/v2/queues/{queue}/subscriptions"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stoker.http.contracts import operation
from stoker.http.fields import Answer, Body, Count, Id, Unchecked, fill
from stoker.http.messaging import queue_params
from stoker.http.messaging.types import PageLink, PageQuery
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import limits, subscription_service
from stoker.model import messaging as model
from stoker.store import subscriptions
from stoker.store.tx import Tx


class SubscriptionValues(Body):
    """``subscriber`` is an http or https URL, and ``ttl`` in seconds. A new subscription needs a subscriber."""

    subscriber: str | None = None
    ttl: int | None = None
    options: dict[str, Any] | None = None


class SubscriptionBody(Unchecked):
    schema = SubscriptionValues


class Confirmation(Body):
    confirmed: bool


class QueueSubscription(Answer):
    id: Id
    source: str
    subscriber: str
    ttl: Count
    age: Count
    options: dict[str, Any]
    confirmed: bool


class SubscriptionPage(Answer):
    subscriptions: list[QueueSubscription]
    links: list[PageLink]


@operation(200, SubscriptionPage)
def index(request: RequestContext, query: PageQuery) -> Response:
    """List the subscriptions of the queue."""
    name, page = queue_params.queue_name(request), list[model.Subscription]()
    with request.app.store.read() as tx:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            after = (subscriptions.seq(tx, queue.id, query.marker) or 0) if query.marker else 0
            page = subscriptions.page(tx, queue.id, after=after, limit=query.limit or limits.PAGE)
        entries = [_serialize(subscription, name, tx.now) for subscription in page]
    links = queue_params.next_link(request, page[-1].id, ("limit",)) if page else []
    return Response(200, SubscriptionPage(subscriptions=entries, links=links))


@operation(201, {"subscription_id": Id}, headers=("Location",), errors=(409,), body_optional=True)
def create(request: RequestContext, body: SubscriptionBody) -> Response:
    """Subscribe a URL to the queue, and create the queue if necessary. Raises Invalid, Conflict or WriteRefused."""
    name = queue_params.queue_name(request)
    _check(request, body)  # before the transaction creates a queue

    def do(tx: Tx) -> str:
        queue = request.app.messaging.lock_or_create(tx, request.project, name)
        return request.app.messaging.subscriptions.subscribe(tx, queue, body)

    id = request.app.store.write(do)
    return Response(201, {"subscription_id": id}, headers={"Location": queue_params.path(request)})


@operation(200, QueueSubscription)
def show(request: RequestContext) -> Response:
    """Return a subscription."""
    with request.app.store.read() as tx:
        queue = queue_params.needed_queue(request, tx)
        subscription = subscription_service.find(tx, queue, request.path["subscription_id"])
        return Response(200, _serialize(subscription, queue.name, tx.now))


@operation(204, headers=("Location",), errors=(409,), body_optional=True)
def change(request: RequestContext, body: SubscriptionBody) -> Response:
    """Change a subscription. Raises EntityNotFound, Invalid or Conflict."""
    id = request.path["subscription_id"]
    _check(request, body)

    def do(tx: Tx) -> None:
        queue = queue_params.needed_queue(request, tx, for_update=True)
        request.app.messaging.subscriptions.change(tx, queue, id, body)

    request.app.store.write(do)
    return Response(204, headers={"Location": queue_params.path(request)})


@operation(204, headers=("Location",))
def confirm(request: RequestContext, body: Confirmation) -> Response:
    """Confirm a subscription, or withdraw the confirmation. Raises EntityNotFound."""
    id, service = request.path["subscription_id"], request.app.messaging.subscriptions

    def do(tx: Tx) -> None:
        queue = queue_params.needed_queue(request, tx, for_update=True)
        service.confirm(tx, queue, id, confirmed=body.confirmed)

    request.app.store.write(do)
    return Response(204, headers={"Location": queue_params.path(request)})


@operation(204)
def delete(request: RequestContext) -> Response:
    """Delete a subscription. Does nothing if the subscription does not exist."""

    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            subscriptions.delete(tx, queue.id, request.path["subscription_id"])

    request.app.store.write(do)
    return Response(204)


def _check(request: RequestContext, body: Any) -> None:
    """Check the body outside a transaction, because the check may resolve a host name. Raises Invalid."""
    subscription_service.check_body(body, request.app.messaging.subscriptions.targets, look_up=True)


def _serialize(subscription: model.Subscription, queue_name: str, now: datetime) -> QueueSubscription:
    age = subscription_service.age(subscription, now)
    return fill(QueueSubscription, subscription, source=queue_name, age=age)
