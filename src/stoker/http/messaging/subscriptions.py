"""/messaging/v2/queues/{queue}/subscriptions"""

from __future__ import annotations

from typing import Any

from stoker.http.messaging import queue_params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import subscription_service
from stoker.store import subscriptions
from stoker.store.tx import Tx


def index(request: RequestContext) -> Response:
    limit, marker = queue_params.limit(request), request.query.get("marker")
    name = queue_params.queue_name(request)
    with request.app.store.read() as tx:
        queue = queue_params.queue(request, tx)
        found = []
        if queue is not None:
            after = (subscriptions.seq(tx, queue.id, marker) or 0) if marker else 0
            found = subscriptions.page(tx, queue.id, after=after, limit=limit)
        shown = [serializers.subscription(each, name, tx.now) for each in found]
    links = queue_params.next_link(request, found[-1].id, ("limit",)) if found else []
    return Response(200, {"subscriptions": shown, "links": links})


def create(request: RequestContext) -> Response:
    """Subscribe a URL to the queue, and create the queue if necessary. Raises Invalid, Conflict or WriteRefused."""
    name, said = queue_params.queue_name(request), request.json() if request.body else {}
    _check(request, said)  # before the transaction creates a queue

    def do(tx: Tx) -> str:
        queue = request.app.messaging.lock_or_create(tx, request.project, name)
        return request.app.messaging.subscriptions.subscribe(tx, queue, said)

    made = request.app.store.write(do)
    return Response(201, {"subscription_id": made}, headers={"Location": queue_params.path(request)})


def show(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        queue = queue_params.needed_queue(request, tx)
        found = subscription_service.find(tx, queue, request.path["subscription_id"])
        return Response(200, serializers.subscription(found, queue.name, tx.now))


def change(request: RequestContext) -> Response:
    """Change a subscription. Raises EntityNotFound, Invalid or Conflict."""
    said, id = request.json() if request.body else {}, request.path["subscription_id"]
    _check(request, said)

    def do(tx: Tx) -> None:
        request.app.messaging.subscriptions.change(
            tx, queue_params.needed_queue(request, tx, for_update=True), id, said
        )

    request.app.store.write(do)
    return Response(204, headers={"Location": queue_params.path(request)})


def confirm(request: RequestContext) -> Response:
    """Confirm a subscription, or withdraw the confirmation. Raises EntityNotFound or Invalid."""
    said, id = request.json() if request.body else {}, request.path["subscription_id"]

    def do(tx: Tx) -> None:
        request.app.messaging.subscriptions.confirm(
            tx, queue_params.needed_queue(request, tx, for_update=True), id, said
        )

    request.app.store.write(do)
    return Response(204, headers={"Location": queue_params.path(request)})


def _check(request: RequestContext, said: Any) -> None:
    """Check the body outside a transaction, because the check may resolve a host name. Raises Invalid."""
    subscription_service.check_body(said, request.app.messaging.subscriptions.targets, look_up=True)


def delete(request: RequestContext) -> Response:
    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            subscriptions.delete(tx, queue.id, request.path["subscription_id"])

    request.app.store.write(do)
    return Response(204)
