"""/messaging/v2/queues/{queue}/claims"""

from __future__ import annotations

from typing import Any

from stoker.http.messaging import queue_params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import checks, claim_operations, limits
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.ownership import check_read
from stoker.store import claims, messages
from stoker.store.tx import Tx


def create(request: RequestContext) -> Response:
    """
    Claim messages for ``ttl`` seconds. Return them, or 204 if no message is free.

    Claimed messages exist until at least ``grace`` seconds after the end of the claim.
    """
    queue_params.client_id(request)
    queue_params.queue_name(request)
    limit = queue_params.limit(request)
    ttl, grace = _times(request.json() if request.body else {})

    def do(tx: Tx) -> tuple[str, dict[str, Any]] | None:
        queue = queue_params.queue(request, tx)
        made = claim_operations.claim(tx, queue, ttl=ttl, grace=grace, limit=limit) if queue else None
        if made is None:
            return None
        return made[0].id, {"messages": _messages(request, tx, made[1])}

    made = request.app.store.write(do)
    if made is None:
        return Response(204)
    return Response(201, made[1], headers={"Location": f"{queue_params.path(request)}/{made[0]}"})


def show(request: RequestContext) -> Response:
    """Return a claim with its messages. Raises EntityNotFound if the claim has ended."""
    queue_params.client_id(request)
    id = request.path["claim_id"]
    with request.app.store.read() as tx:
        queue = queue_params.needed_queue(request, tx)
        check_read(queue, as_owner=request.as_owner)
        found = claims.find(tx, queue.id, id)
        if found is None:
            raise EntityNotFound(f"there is no claim {id!r:.100} in the queue {queue.name!r}, or it has ended")
        shown = {
            "age": max(0, int((tx.now - found.renewed_at).total_seconds())),
            "ttl": found.ttl,
            "href": queue_params.path(request),
            "messages": _messages(request, tx, messages.of_claim(tx, queue.id, id)),
        }
    return Response(200, shown)


def change(request: RequestContext) -> Response:
    """Extend a claim: it ends ``ttl`` seconds from now. Raises EntityNotFound if the claim has ended."""
    queue_params.client_id(request)
    if not request.body:
        raise Invalid("the request's body is empty: give a ttl, a grace or both")
    ttl, grace = _times(request.json())

    def do(tx: Tx) -> None:
        claim_operations.renew(
            tx, queue_params.needed_queue(request, tx), request.path["claim_id"], ttl=ttl, grace=grace
        )

    request.app.store.write(do)
    return Response(204)


def delete(request: RequestContext) -> Response:
    """Release the messages of a claim. Does nothing if the claim has ended."""
    queue_params.client_id(request)

    def do(tx: Tx) -> None:
        queue = queue_params.queue(request, tx)
        if queue is not None:
            claim_operations.release(tx, queue, request.path["claim_id"])

    request.app.store.write(do)
    return Response(204)


def _times(said: Any) -> tuple[int, int]:
    """Return ttl and grace in seconds. Raises Invalid."""
    document = checks.mapping(said, "a claim")
    ttl, grace = document.get("ttl", limits.CLAIM_TTL), document.get("grace", limits.CLAIM_GRACE)
    for value, name in ((ttl, "a claim's ttl"), (grace, "a claim's grace")):
        checks.whole(value, name, limits.SHORTEST_CLAIM, limits.LONGEST_CLAIM)
    return ttl, grace


def _messages(request: RequestContext, tx: Tx, found: list[Any]) -> list[dict[str, Any]]:
    return [serializers.message(each, queue_params.base(request), tx.now) for each in found]
