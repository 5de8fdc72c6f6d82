"""/messaging/v2/queues/{queue}/subscriptions"""

from __future__ import annotations

from stoker.http.call import Call, Reply
from stoker.http.messaging import asking, shapes
from stoker.messaging import subscribing
from stoker.store import subscriptions
from stoker.store.tx import Tx


def index(call: Call) -> Reply:
    limit, marker = asking.limit(call), call.query.get("marker")
    name = asking.queue_name(call)
    with call.services.store.read() as tx:
        queue = asking.queue(call, tx)
        found = []
        if queue is not None:
            after = (subscriptions.seq(tx, queue.id, marker) or 0) if marker else 0
            found = subscriptions.page(tx, queue.id, after=after, limit=limit)
        shown = [shapes.subscription(each, name, tx.now) for each in found]
    links = asking.next_link(call, found[-1].id, ("limit",)) if found else []
    return Reply(200, {"subscriptions": shown, "links": links})


def create(call: Call) -> Reply:
    name, said = asking.queue_name(call), call.json() if call.body else {}
    subscribing.checked(said)  # before a queue is made for it

    def do(tx: Tx) -> str:
        queue = call.services.messaging.hold_or_create(tx, call.project, name)
        return call.services.messaging.subscribing.subscribe(tx, queue, said)

    made = call.services.store.write(do)
    return Reply(201, {"subscription_id": made}, headers={"Location": asking.path(call)})


def show(call: Call) -> Reply:
    with call.services.store.read() as tx:
        queue = asking.needed_queue(call, tx)
        found = subscribing.found(tx, queue, call.path["subscription_id"])
        return Reply(200, shapes.subscription(found, queue.name, tx.now))


def change(call: Call) -> Reply:
    said, id = call.json() if call.body else {}, call.path["subscription_id"]

    def do(tx: Tx) -> None:
        call.services.messaging.subscribing.change(tx, asking.needed_queue(call, tx, hold=True), id, said)

    call.services.store.write(do)
    return Reply(204, headers={"Location": asking.path(call)})


def confirm(call: Call) -> Reply:
    said, id = call.json() if call.body else {}, call.path["subscription_id"]

    def do(tx: Tx) -> None:
        call.services.messaging.subscribing.confirm(tx, asking.needed_queue(call, tx, hold=True), id, said)

    call.services.store.write(do)
    return Reply(204, headers={"Location": asking.path(call)})


def delete(call: Call) -> Reply:
    def do(tx: Tx) -> None:
        queue = asking.queue(call, tx)
        if queue is not None:
            subscriptions.delete(tx, queue.id, call.path["subscription_id"])

    call.services.store.write(do)
    return Reply(204)
