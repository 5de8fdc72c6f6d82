"""/messaging/v2/queues and what is about a queue as a whole."""

from __future__ import annotations

from typing import Any

from stoker.http import errors, reading
from stoker.http.call import Call, Reply
from stoker.http.messaging import asking, shapes
from stoker.messaging import metadata
from stoker.model.errors import Invalid
from stoker.store import messages, queues
from stoker.store.tx import Tx

PATCH_TYPE = "application/openstack-messaging-v2.0-json-patch"
_KINDS = ("messages", "subscriptions")


def index(call: Call) -> Reply:
    detailed, limit = asking.flag(call, "detailed"), asking.limit(call)
    marker, part = call.query.get("marker", ""), call.query.get("name", "")
    counted = asking.flag(call, "with_count")
    with call.services.store.read() as tx:
        found = queues.page(tx, call.project, marker=marker, limit=limit, part=part)
        count = queues.count(tx, call.project) if counted else 0
    shown: dict[str, Any] = {"queues": [shapes.queue(each, detailed=detailed) for each in found], "links": []}
    if found:
        shown["links"] = asking.next_link(call, found[-1].name, ("limit", "detailed", "name", "with_count"))
    if count:
        shown["count"] = count
    return Reply(200, shown)


def put(call: Call) -> Reply:
    name, said = asking.queue_name(call), reading.body(call) if call.body else {}
    made = call.services.store.write(lambda tx: call.services.messaging.create_queue(tx, call.project, name, said))
    return Reply(201 if made else 204, headers={"Location": asking.path(call)})


def show(call: Call) -> Reply:
    """One that is not there yet is shown as it would be: queues are made by being used."""
    with call.services.store.read() as tx:
        found = asking.queue(call, tx)
    return Reply(200, metadata.shown(found.metadata if found else {}))


def patch(call: Call) -> Reply:
    if call.media_type != PATCH_TYPE:
        said = f"the body of a PATCH must be of the media type {PATCH_TYPE}"
        return errors.reply(call.request.scope["path"], 415, "UnsupportedMediaType", said, {"Accept-Patch": PATCH_TYPE})
    name, changes = asking.queue_name(call), call.json()

    def do(tx: Tx) -> dict[str, Any]:
        return call.services.messaging.patch_queue(tx, call.project, name, changes)

    return Reply(200, metadata.shown(call.services.store.write(do)))


def delete(call: Call) -> Reply:
    name = asking.queue_name(call)
    call.services.store.write(lambda tx: call.services.messaging.delete_queue(tx, call.project, name))
    return Reply(204)


def stats(call: Call) -> Reply:
    with call.services.store.read() as tx:
        found = asking.queue(call, tx)
        counted = messages.stats(tx, found.id) if found else None
        return Reply(200, shapes.stats(counted, asking.base(call), tx.now))


def purge(call: Call) -> Reply:
    name = asking.queue_name(call)
    kinds = _kinds(call.json()) if call.body else list(_KINDS)
    call.services.store.write(lambda tx: call.services.messaging.purge(tx, call.project, name, kinds))
    return Reply(204)


def _kinds(said: Any) -> list[str]:
    found = said.get("resource_types") if isinstance(said, dict) else None
    if not isinstance(found, list) or not all(each in _KINDS for each in found):
        raise Invalid(f"resource_types must be a list of some of {', '.join(_KINDS)}")
    return found
