"""/messaging/v2/queues/{queue}/claims"""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.messaging import asking, shapes
from stoker.messaging import checks, claiming, limits
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import claims, messages
from stoker.store.tx import Tx


def create(call: Call) -> Reply:
    asking.client_id(call)
    asking.queue_name(call)
    limit = asking.limit(call)
    ttl, grace = _times(call.json() if call.body else {})

    def do(tx: Tx) -> tuple[str, dict[str, Any]] | None:
        queue = asking.queue(call, tx)
        made = claiming.claim(tx, queue, ttl=ttl, grace=grace, limit=limit) if queue else None
        if made is None:
            return None
        return made[0].id, {"messages": _messages(call, tx, made[1])}

    made = call.services.store.write(do)
    if made is None:
        return Reply(204)
    return Reply(201, made[1], headers={"Location": f"{asking.path(call)}/{made[0]}"})


def show(call: Call) -> Reply:
    asking.client_id(call)
    id = call.path["claim_id"]
    with call.services.store.read() as tx:
        queue = asking.needed_queue(call, tx)
        found = claims.find(tx, queue.id, id)
        if found is None:
            raise EntityNotFound(f"there is no claim {id!r:.100} in the queue {queue.name!r}, or it is over")
        shown = {
            "age": max(0, int((tx.now - found.renewed_at).total_seconds())),
            "ttl": found.ttl,
            "href": asking.path(call),
            "messages": _messages(call, tx, messages.of_claim(tx, queue.id, id)),
        }
    return Reply(200, shown)


def change(call: Call) -> Reply:
    asking.client_id(call)
    if not call.body:
        raise Invalid("the request's body is empty: say a ttl, a grace or both")
    ttl, grace = _times(call.json())

    def do(tx: Tx) -> None:
        claiming.renew(tx, asking.needed_queue(call, tx), call.path["claim_id"], ttl=ttl, grace=grace)

    call.services.store.write(do)
    return Reply(204)


def delete(call: Call) -> Reply:
    asking.client_id(call)

    def do(tx: Tx) -> None:
        queue = asking.queue(call, tx)
        if queue is not None:
            claiming.release(tx, queue, call.path["claim_id"])

    call.services.store.write(do)
    return Reply(204)


def _times(said: Any) -> tuple[int, int]:
    """(ttl, grace) in seconds. Raises Invalid."""
    document = checks.mapping(said, "a claim")
    ttl, grace = document.get("ttl", limits.CLAIM_TTL), document.get("grace", limits.CLAIM_GRACE)
    for value, name in ((ttl, "a claim's ttl"), (grace, "a claim's grace")):
        checks.whole(value, name, limits.SHORTEST_CLAIM, limits.LONGEST_CLAIM)
    return ttl, grace


def _messages(call: Call, tx: Tx, found: list[Any]) -> list[dict[str, Any]]:
    return [shapes.message(each, asking.base(call), tx.now) for each in found]
