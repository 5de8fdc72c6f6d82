"""/messaging/v2/queues/{queue}/subscriptions"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from stoker.http.contracts import operation
from stoker.http.messaging import params
from stoker.http.request import RequestContext, Response
from stoker.messaging import subscription_service
from stoker.model.messaging import Subscription
from stoker.store import subscriptions
from stoker.store.tx import Tx


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    queue, marker, limit = params.find_queue(request, tx), request.query.get("marker"), params.page_size(request)
    page: list[Subscription] = []
    if queue is not None:
        after = (subscriptions.seq(tx, queue.id, marker) or 0) if marker else 0
        page = subscriptions.page(tx, queue.id, after=after, limit=limit)
    return {
        "subscriptions": [_serialize(subscription, params.queue_name(request), tx.now) for subscription in page],
        "links": params.next_link(request, page[-1].id, ("limit",)) if page else [],
    }


@operation(201, body_optional=True)
def create(request: RequestContext, body: dict[str, Any]) -> Response:
    """Subscribe a URL to the queue, and create the queue if necessary. Raises Invalid, Conflict or WriteRefused."""
    name, service = params.queue_name(request), request.app.messaging
    service.subscriptions.check(body)

    def do(tx: Tx) -> str:
        return service.subscriptions.subscribe(tx, service.lock_or_create(tx, request.project, name), body)

    id = request.write(do)
    return Response(201, {"subscription_id": id}, headers={"Location": params.path(request)})


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    queue = params.require(request, params.find_queue(request, tx))
    return _serialize(subscription_service.find(tx, queue, request.path["subscription_id"]), queue.name, tx.now)


@operation(204, body_optional=True)
def change(request: RequestContext, body: dict[str, Any]) -> Response:
    """Change a subscription. Raises EntityNotFound, Invalid or Conflict."""
    service = request.app.messaging.subscriptions
    service.check(body)

    def do(tx: Tx) -> None:
        queue = params.require(request, params.writable_queue(request, tx, for_update=True))
        service.change(tx, queue, request.path["subscription_id"], body)

    request.write(do)
    return Response(204, headers={"Location": params.path(request)})


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a subscription. Does nothing if the subscription does not exist."""
    queue = params.writable_queue(request, tx)
    if queue is not None:
        subscriptions.delete(tx, queue.id, request.path["subscription_id"])


def _serialize(subscription: Subscription, queue_name: str, now: datetime) -> dict[str, Any]:
    return {
        "id": subscription.id,
        "source": queue_name,
        "subscriber": subscription.subscriber,
        "ttl": subscription.ttl,
        "age": int((now - subscription.renewed_at).total_seconds()),
        "options": subscription.options,
        "confirmed": False,  # as in a Zaqar that requires no confirmation
    }
