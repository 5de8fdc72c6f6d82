"""/messaging/v2/queues/{queue}/messages"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from stoker.http.contracts import StrictBody, operation
from stoker.http.messaging import params
from stoker.http.request import RequestContext, Response
from stoker.messaging import limits
from stoker.messaging.service import Draft
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import queues
from stoker.store.tx import Tx

_LATEST = 2**62


class NewMessages(StrictBody):
    messages: Annotated[list[Draft], Meta(min_length=1, max_length=limits.MESSAGES_A_POST)]


@operation(201)
def post(request: RequestContext, tx: Tx, body: NewMessages) -> Response:
    """Post messages, and create the queue if necessary."""
    name, path = params.queue_name(request), params.path(request)
    ids = request.app.messaging.receive(
        tx,
        request.project,
        name,
        body.messages,
        size=len(request.body),
        client_id=params.client_id(request),
        as_owner=request.caller.as_owner,
    )
    resources = [f"{path}/{id}" for id in ids]
    return Response(201, {"resources": resources}, headers={"Location": f"{path}?ids={','.join(ids)}"})


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    List messages, or the messages that `ids` names.

    By default without the client's own and without delayed messages.
    """
    client_id, ids, base = params.client_id(request), params.ids(request), params.base(request)
    not_of = None if params.flag(request, "echo") else client_id
    delayed, limit = params.flag(request, "include_delayed"), params.page_size(request)
    queue = params.readable_queue(request, tx)
    if ids:
        named = queues.several_messages(tx, queue.id, ids) if queue else []
        if not named:
            raise EntityNotFound(f"the queue {params.queue_name(request)!r} has none of the messages {ids!r:.500}")
        return {"messages": params.serialize(named, base, tx.now)}
    page, links = [], []
    if queue is not None:
        after = _parse_marker(tx, queue.id, request.query.get("marker"))
        page = queues.page_messages(tx, queue.id, after=after, limit=limit, not_of=not_of, delayed=delayed)
    if page:
        links = params.next_link(request, str(page[-1].seq), ("limit", "echo", "include_delayed"))
    return {"messages": params.serialize(page, base, tx.now), "links": links}


@operation(200)
def delete_several(request: RequestContext, tx: Tx) -> Response:
    """Delete the messages that `ids` names (204), or remove and return up to `pop` messages. Raises Invalid."""
    params.client_id(request)
    ids, pop = params.ids(request), bool(request.query.get("pop"))
    if bool(ids) == pop:
        raise Invalid("give either ids, of messages to delete, or pop, the number of messages to remove and return")
    if ids:
        queue = params.writable_queue(request, tx)
        if queue is not None:
            queues.delete_messages(tx, queue.id, ids)
        return Response(204)
    name, limit = params.queue_name(request), params.page_size(request, "pop")
    removed = request.app.messaging.pop(tx, request.project, name, limit, as_owner=request.caller.as_owner)
    return Response(200, {"messages": [params.serialize_popped(message, tx.now) for message in removed]})


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """Return a message. Raises EntityNotFound."""
    params.client_id(request)
    id, queue = request.path["message_id"], params.readable_queue(request, tx)
    named = queues.several_messages(tx, queue.id, [id]) if queue else []
    if not named:
        raise EntityNotFound(f"there is no message {id!r:.100} in the queue {params.queue_name(request)!r}")
    return params.serialize(named, params.base(request), tx.now)[0]


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a message. Does nothing if the message does not exist."""
    params.client_id(request)
    queue = params.writable_queue(request, tx)
    if queue is not None:
        queues.delete_messages(tx, queue.id, [request.path["message_id"]])


def _parse_marker(tx: Tx, queue_id: str, marker: str | None) -> int:
    """Return the position after which the page begins. Links contain a position; openstacksdk sends a message id."""
    if not marker:
        return 0
    if marker.isascii() and marker.isdecimal():
        return int(marker) if len(marker) < 19 else _LATEST
    return queues.message_seq(tx, queue_id, marker) or 0
