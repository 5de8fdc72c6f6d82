"""/messaging/v2/queues/{queue}/claims"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from stoker.http.contracts import Success, operation
from stoker.http.fields import Answer, Body, Count, Query
from stoker.http.messaging import queue_params
from stoker.http.messaging.types import MessageList, PageSize, QueueMessage, serialize_messages
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import claim_operations, limits
from stoker.model.errors import EntityNotFound
from stoker.model.ownership import check_read
from stoker.store import claims, messages
from stoker.store.tx import Tx

ClaimTime = Annotated[int, Meta(ge=limits.SHORTEST_CLAIM, le=limits.LONGEST_CLAIM)]


class ClaimTimes(Body):
    """Seconds of the claim, and the least seconds that its messages exist afterwards."""

    ttl: ClaimTime = limits.CLAIM_TTL
    grace: ClaimTime = limits.CLAIM_GRACE


class ClaimQuery(Query):
    limit: PageSize | None = None


class QueueClaim(Answer):
    age: Count
    ttl: Count
    href: str
    messages: list[QueueMessage]


@operation(
    201,
    MessageList,
    headers=("Location",),
    also={204: Success()},
    request_headers=("Client-ID",),
    body_optional=True,
)
def create(request: RequestContext, body: ClaimTimes, query: ClaimQuery) -> Response:
    """
    Claim messages and return them, or 204 if no message is free.

    Claimed messages exist until at least `grace` seconds after the end of the claim.
    """
    queue_params.client_id(request)
    base, path = queue_params.base(request), queue_params.path(request)

    def do(tx: Tx) -> Response:
        queue = queue_params.queue(request, tx)
        limit = query.limit or limits.PAGE
        claimed = claim_operations.claim(tx, queue, ttl=body.ttl, grace=body.grace, limit=limit) if queue else None
        if claimed is None:
            return Response(204)
        claim, taken = claimed
        content = MessageList(messages=serialize_messages(taken, base, tx.now))
        return Response(201, content, headers={"Location": f"{path}/{claim.id}"})

    return request.app.store.write(do)


@operation(200, QueueClaim, request_headers=("Client-ID",))
def show(request: RequestContext) -> Response:
    """Return a claim with its messages. Raises EntityNotFound if the claim has ended."""
    queue_params.client_id(request)
    id, base = request.path["claim_id"], queue_params.base(request)
    with request.app.store.read() as tx:
        queue = queue_params.needed_queue(request, tx)
        check_read(queue, as_owner=request.as_owner)
        claim = claims.find(tx, queue.id, id)
        if claim is None:
            raise EntityNotFound(f"there is no claim {id!r:.100} in the queue {queue.name!r}, or it has ended")
        content = QueueClaim(
            age=max(0, int((tx.now - claim.renewed_at).total_seconds())),
            ttl=claim.ttl,
            href=queue_params.path(request),
            messages=serialize_messages(messages.of_claim(tx, queue.id, id), base, tx.now),
        )
    return Response(200, content)


@operation(204, request_headers=("Client-ID",))
def change(request: RequestContext, body: ClaimTimes) -> Response:
    """Extend a claim: it ends `ttl` seconds from now. Raises EntityNotFound if the claim has ended."""
    queue_params.client_id(request)
    id = request.path["claim_id"]

    def do(tx: Tx) -> None:
        claim_operations.renew(tx, queue_params.needed_queue(request, tx), id, ttl=body.ttl, grace=body.grace)

    request.app.store.write(do)
    return Response(204)


@operation(204, request_headers=("Client-ID",))
def delete(request: RequestContext) -> Response:
    """Release the messages of a claim. Does nothing if the claim has ended."""
    queue_params.client_id(request)

    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            claim_operations.release(tx, queue, request.path["claim_id"])

    request.app.store.write(do)
    return Response(204)
