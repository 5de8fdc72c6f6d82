"""/messaging/v2/queues/{queue}/messages"""

from __future__ import annotations

from typing import Any

from stoker.http.messaging import queue_params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import deletion
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import messages
from stoker.store.messages import Filter
from stoker.store.tx import Tx

_LATEST = 2**62


def post(request: RequestContext) -> Response:
    """Post messages, and create the queue if necessary."""
    name, client_id, said = queue_params.queue_name(request), queue_params.client_id(request), request.json()

    def do(tx: Tx) -> list[str]:
        taken = request.app.messaging.receive(
            tx, request.project, name, said, size=len(request.body), client_id=client_id, as_owner=request.as_owner
        )
        return list(taken)

    made, path = request.app.store.write(do), queue_params.path(request)
    shown = {"resources": [f"{path}/{id}" for id in made]}
    return Response(201, shown, headers={"Location": f"{path}?ids={','.join(made)}"})


def index(request: RequestContext) -> Response:
    """
    List messages, or the messages that ``ids`` names.

    By default without the client's own, claimed and delayed messages.
    """
    client_id, ids = queue_params.client_id(request), queue_params.ids(request, "ids")
    if ids is not None:
        return _by_ids(request, ids)
    limit, echo = queue_params.limit(request), queue_params.flag(request, "echo")
    which = Filter(
        not_of=None if echo else client_id,
        claimed=queue_params.flag(request, "include_claimed"),
        delayed=queue_params.flag(request, "include_delayed"),
    )
    queue_params.queue_name(request)
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        found = []
        if queue is not None:
            after = _parse_marker(tx, queue.id, request.query.get("marker"))
            found = messages.page(tx, queue.id, which, after=after, limit=limit)
        shown = _serialize(request, tx, found)
    shown["links"] = []
    if found:
        going_on = ("limit", "echo", "include_claimed", "include_delayed")
        shown["links"] = queue_params.next_link(request, str(found[-1].seq), going_on)
    return Response(200, shown)


def delete_several(request: RequestContext) -> Response:
    """Delete the messages that ``ids`` names, or remove and return up to ``pop`` messages. Raises Invalid."""
    queue_params.client_id(request)
    name, ids, pop = (
        queue_params.queue_name(request),
        queue_params.ids(request, "ids"),
        queue_params.whole(request, "pop"),
    )
    if (ids is None) == (pop is None):
        raise Invalid("give either ids, of messages to delete, or pop, the number of messages to remove and return")
    if pop is None:
        claim_ids = queue_params.ids(request, "claim_ids")

        def drop(tx: Tx) -> None:
            queue = queue_params.queue(request, tx)
            if queue is not None:
                deletion.several(tx, queue, ids or [], claim_ids)

        request.app.store.write(drop)
        return Response(204)

    def take(tx: Tx) -> dict[str, Any]:
        found = request.app.messaging.pop(tx, request.project, name, pop, as_owner=request.as_owner)
        return {"messages": [serializers.popped_message(each, tx.now) for each in found]}

    return Response(200, request.app.store.write(take))


def show(request: RequestContext) -> Response:
    """Return a message. Raises EntityNotFound."""
    queue_params.client_id(request)
    id = request.path["message_id"]
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        found = messages.several(tx, queue.id, [id]) if queue else []
        if not found:
            raise EntityNotFound(f"there is no message {id!r:.100} in the queue {queue_params.queue_name(request)!r}")
        return Response(200, serializers.message(found[0], queue_params.base(request), tx.now))


def delete(request: RequestContext) -> Response:
    """
    Delete a message. Does nothing if the message does not exist.

    Raises Forbidden if another claim holds the message, and Invalid for a claim that has ended or does not hold it.
    """
    queue_params.client_id(request)

    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            deletion.one(tx, queue, request.path["message_id"], request.query.get("claim_id"))

    request.app.store.write(do)
    return Response(204)


def _by_ids(request: RequestContext, ids: list[str]) -> Response:
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        found = messages.several(tx, queue.id, ids) if queue else []
        if not found:
            raise EntityNotFound(
                f"the queue {queue_params.queue_name(request)!r} has none of the messages {', '.join(ids):.500}"
            )
        return Response(200, _serialize(request, tx, found))


def _serialize(request: RequestContext, tx: Tx, found: list[Any]) -> dict[str, Any]:
    base = queue_params.base(request)
    return {"messages": [serializers.message(each, base, tx.now) for each in found]}


def _parse_marker(tx: Tx, queue_id: str, marker: str | None) -> int:
    """Return the position after which the page begins. Links contain a position; openstacksdk sends a message id."""
    if not marker:
        return 0
    if marker.isascii() and marker.isdecimal():
        return int(marker) if len(marker) < 19 else _LATEST
    return messages.seq(tx, queue_id, marker) or 0
