"""/messaging/v2/queues/{queue}/messages"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta

from stoker.http.contracts import Success, operation
from stoker.http.fields import Absent, Answer, Body, Count, Id, Query, fill
from stoker.http.messaging import queue_params
from stoker.http.messaging.types import (
    Ids,
    PageLink,
    PageQuery,
    PageSize,
    QueueMessage,
    WordFlag,
    age,
    body_of,
    serialize_message,
    serialize_messages,
    split_ids,
)
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import deletion, limits
from stoker.messaging.drafts import Draft
from stoker.model import messaging as model
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import messages
from stoker.store.messages import Filter
from stoker.store.tx import Tx

_LATEST = 2**62


class NewMessage(Body):
    """A message of any JSON. ``ttl`` and ``delay`` are in seconds; the queue's metadata has the defaults."""

    body: Any
    ttl: Annotated[int, Meta(ge=limits.SHORTEST_TTL, le=limits.LONGEST_TTL)] | Absent = UNSET
    delay: Annotated[int, Meta(ge=0, le=limits.LONGEST_DELAY)] | Absent = UNSET


class NewMessages(Body):
    messages: Annotated[list[NewMessage], Meta(min_length=1, max_length=limits.MESSAGES_A_POST)]


class MessageQuery(PageQuery):
    """``ids`` names messages; without it, a page of the queue is listed."""

    ids: Ids = ()
    echo: Annotated[WordFlag, Meta(description="Also the client's own messages")] = False
    include_claimed: WordFlag = False
    include_delayed: WordFlag = False


class DeletionQuery(Query):
    """Either ``ids``, the messages to delete, or ``pop``, the number of messages to remove and return."""

    ids: Ids = ()
    claim_ids: Ids = ()
    pop: PageSize | None = None


class ClaimIdQuery(Query):
    claim_id: str | None = None


class PostedMessages(Answer):
    resources: list[str]


class PoppedMessage(Answer):
    """A message that was removed from its queue. It has no link."""

    id: Id
    ttl: Count
    age: Count
    body: Any
    claim_id: str | None
    claim_count: Count
    checksum: str


class MessagePage(Answer):
    messages: list[QueueMessage]
    links: list[PageLink] | Absent = UNSET


@operation(201, PostedMessages, headers=("Location",), request_headers=("Client-ID",))
def post(request: RequestContext, body: NewMessages) -> Response:
    """Post messages, and create the queue if necessary."""
    name, client_id = queue_params.queue_name(request), queue_params.client_id(request)
    drafts = [Draft(message.body, _or_none(message.ttl), _or_none(message.delay)) for message in body.messages]
    size, path = len(request.body), queue_params.path(request)
    ids = request.app.store.write(
        lambda tx: request.app.messaging.receive(
            tx, request.project, name, drafts, size=size, client_id=client_id, as_owner=request.as_owner
        )
    )
    content = PostedMessages(resources=[f"{path}/{id}" for id in ids])
    return Response(201, content, headers={"Location": f"{path}?ids={','.join(ids)}"})


@operation(200, MessagePage, request_headers=("Client-ID",))
def index(request: RequestContext, query: MessageQuery) -> Response:
    """
    List messages, or the messages that `ids` names.

    By default without the client's own, claimed and delayed messages.
    """
    client_id, ids = queue_params.client_id(request), split_ids(query.ids, "ids")
    if ids is not None:
        return _by_ids(request, ids)
    which = Filter(
        not_of=None if query.echo else client_id, claimed=query.include_claimed, delayed=query.include_delayed
    )
    base = queue_params.base(request)
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        page: list[model.Message] = []
        if queue is not None:
            after = _parse_marker(tx, queue.id, query.marker)
            page = messages.page(tx, queue.id, which, after=after, limit=query.limit or limits.PAGE)
        content = MessagePage(messages=serialize_messages(page, base, tx.now), links=[])
    if page:
        repeated = ("limit", "echo", "include_claimed", "include_delayed")
        content.links = queue_params.next_link(request, str(page[-1].seq), repeated)
    return Response(200, content)


@operation(200, {"messages": list[PoppedMessage]}, also={204: Success()}, request_headers=("Client-ID",))
def delete_several(request: RequestContext, query: DeletionQuery) -> Response:
    """Delete the messages that `ids` names (204), or remove and return up to `pop` messages. Raises Invalid."""
    queue_params.client_id(request)
    name, ids, pop = queue_params.queue_name(request), split_ids(query.ids, "ids"), query.pop
    if (ids is None) == (pop is None):
        raise Invalid("give either ids, of messages to delete, or pop, the number of messages to remove and return")
    if pop is None:
        claim_ids = split_ids(query.claim_ids, "claim_ids")

        def drop(tx: Tx) -> None:
            queue = queue_params.queue(request, tx)
            if queue is not None:
                deletion.several(tx, queue, ids or [], claim_ids)

        request.app.store.write(drop)
        return Response(204)

    def take(tx: Tx) -> list[PoppedMessage]:
        removed = request.app.messaging.pop(tx, request.project, name, pop, as_owner=request.as_owner)
        return [fill(PoppedMessage, message, age=age(message, tx.now), body=body_of(message)) for message in removed]

    return Response(200, {"messages": request.app.store.write(take)})


@operation(200, QueueMessage, request_headers=("Client-ID",))
def show(request: RequestContext) -> Response:
    """Return a message. Raises EntityNotFound."""
    queue_params.client_id(request)
    id, name = request.path["message_id"], queue_params.queue_name(request)
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        rows = messages.several(tx, queue.id, [id]) if queue else []
        if not rows:
            raise EntityNotFound(f"there is no message {id!r:.100} in the queue {name!r}")
        return Response(200, serialize_message(rows[0], queue_params.base(request), tx.now))


@operation(204, request_headers=("Client-ID",))
def delete(request: RequestContext, query: ClaimIdQuery) -> Response:
    """
    Delete a message. Does nothing if the message does not exist.

    Raises Forbidden if another claim holds the message, and Invalid for a claim that has ended or does not hold it.
    """
    queue_params.client_id(request)

    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            deletion.one(tx, queue, request.path["message_id"], query.claim_id)

    request.app.store.write(do)
    return Response(204)


def _by_ids(request: RequestContext, ids: list[str]) -> Response:
    name, base = queue_params.queue_name(request), queue_params.base(request)
    with request.app.store.read() as tx:
        queue = queue_params.readable_queue(request, tx)
        rows = messages.several(tx, queue.id, ids) if queue else []
        if not rows:
            raise EntityNotFound(f"the queue {name!r} has none of the messages {', '.join(ids):.500}")
        return Response(200, MessagePage(messages=serialize_messages(rows, base, tx.now)))


def _or_none(seconds: int | Absent) -> int | None:
    return None if seconds is UNSET else seconds


def _parse_marker(tx: Tx, queue_id: str, marker: str | None) -> int:
    """Return the position after which the page begins. Links contain a position; openstacksdk sends a message id."""
    if not marker:
        return 0
    if marker.isascii() and marker.isdecimal():
        return int(marker) if len(marker) < 19 else _LATEST
    return messages.seq(tx, queue_id, marker) or 0
