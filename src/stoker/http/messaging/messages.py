"""/messaging/v2/queues/{queue}/messages"""

from __future__ import annotations

from typing import Any

from stoker.http.call import Call, Reply
from stoker.http.messaging import asking, shapes
from stoker.messaging import deleting
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import messages
from stoker.store.messages import Filter
from stoker.store.tx import Tx

_LATEST = 2**62


def post(call: Call) -> Reply:
    name, client_id, said = asking.queue_name(call), asking.client_id(call), call.json()

    def do(tx: Tx) -> list[str]:
        taken = call.services.messaging.receive(tx, call.project, name, said, size=len(call.body), client_id=client_id)
        return list(taken)

    made, path = call.services.store.write(do), asking.path(call)
    shown = {"resources": [f"{path}/{id}" for id in made]}
    return Reply(201, shown, headers={"Location": f"{path}?ids={','.join(made)}"})


def index(call: Call) -> Reply:
    client_id, ids = asking.client_id(call), asking.ids(call, "ids")
    if ids is not None:
        return _by_ids(call, ids)
    limit, echo = asking.limit(call), asking.flag(call, "echo")
    which = Filter(
        not_of=None if echo else client_id,
        claimed=asking.flag(call, "include_claimed"),
        delayed=asking.flag(call, "include_delayed"),
    )
    asking.queue_name(call)
    with call.services.store.read() as tx:
        queue = asking.queue(call, tx)
        found = []
        if queue is not None:
            after = _marked(tx, queue.id, call.query.get("marker"))
            found = messages.page(tx, queue.id, which, after=after, limit=limit)
        shown = _shown(call, tx, found)
    shown["links"] = []
    if found:
        going_on = ("limit", "echo", "include_claimed", "include_delayed")
        shown["links"] = asking.next_link(call, str(found[-1].seq), going_on)
    return Reply(200, shown)


def delete_several(call: Call) -> Reply:
    asking.client_id(call)
    name, ids, pop = asking.queue_name(call), asking.ids(call, "ids"), asking.whole(call, "pop")
    if (ids is None) == (pop is None):
        raise Invalid("say either ids, of messages to delete, or pop, how many to take; not both and not none")
    if pop is None:
        claim_ids = asking.ids(call, "claim_ids")

        def drop(tx: Tx) -> None:
            queue = asking.queue(call, tx)
            if queue is not None:
                deleting.several(tx, queue, ids or [], claim_ids)

        call.services.store.write(drop)
        return Reply(204)

    def take(tx: Tx) -> dict[str, Any]:
        found = call.services.messaging.pop(tx, call.project, name, pop)
        return {"messages": [shapes.popped(each, tx.now) for each in found]}

    return Reply(200, call.services.store.write(take))


def show(call: Call) -> Reply:
    asking.client_id(call)
    id = call.path["message_id"]
    with call.services.store.read() as tx:
        queue = asking.queue(call, tx)
        found = messages.several(tx, queue.id, [id]) if queue else []
        if not found:
            raise EntityNotFound(f"there is no message {id!r:.100} in the queue {asking.queue_name(call)!r}")
        return Reply(200, shapes.message(found[0], asking.base(call), tx.now))


def delete(call: Call) -> Reply:
    asking.client_id(call)

    def do(tx: Tx) -> None:
        queue = asking.queue(call, tx)
        if queue is not None:
            deleting.one(tx, queue, call.path["message_id"], call.query.get("claim_id"))

    call.services.store.write(do)
    return Reply(204)


def _by_ids(call: Call, ids: list[str]) -> Reply:
    with call.services.store.read() as tx:
        queue = asking.queue(call, tx)
        found = messages.several(tx, queue.id, ids) if queue else []
        if not found:
            raise EntityNotFound(
                f"the queue {asking.queue_name(call)!r} has none of the messages {', '.join(ids):.500}"
            )
        return Reply(200, _shown(call, tx, found))


def _shown(call: Call, tx: Tx, found: list[Any]) -> dict[str, Any]:
    base = asking.base(call)
    return {"messages": [shapes.message(each, base, tx.now) for each in found]}


def _marked(tx: Tx, queue_id: str, marker: str | None) -> int:
    """Where a list goes on: links say a place; openstacksdk says the last message's id."""
    if not marker:
        return 0
    if marker.isascii() and marker.isdecimal():
        return int(marker) if len(marker) < 19 else _LATEST
    return messages.seq(tx, queue_id, marker) or 0
