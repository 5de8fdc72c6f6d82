"""/messaging/v2/queues: queues, and operations on a whole queue."""

from __future__ import annotations

from typing import Any

from stoker.http import errors, params
from stoker.http.messaging import queue_params, serializers
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import metadata
from stoker.model.errors import Invalid
from stoker.store import messages, queues
from stoker.store.tx import Tx

PATCH_TYPE = "application/openstack-messaging-v2.0-json-patch"
_KINDS = ("messages", "subscriptions")


def index(request: RequestContext) -> Response:
    detailed, limit = queue_params.flag(request, "detailed"), queue_params.limit(request)
    marker, part = request.query.get("marker", ""), request.query.get("name", "")
    counted = queue_params.flag(request, "with_count")
    with request.app.store.read() as tx:
        found = queues.page(tx, request.project, marker=marker, limit=limit, part=part)
        count = queues.count(tx, request.project) if counted else 0
    shown: dict[str, Any] = {"queues": [serializers.queue(each, detailed=detailed) for each in found], "links": []}
    if found:
        shown["links"] = queue_params.next_link(request, found[-1].name, ("limit", "detailed", "name", "with_count"))
    if count:
        shown["count"] = count
    return Response(200, shown)


def put(request: RequestContext) -> Response:
    """Create a queue (201), or return 204 if it exists."""
    name, said = queue_params.queue_name(request), params.body(request) if request.body else {}
    made = request.app.store.write(lambda tx: request.app.messaging.create_queue(tx, request.project, name, said))
    return Response(201 if made else 204, headers={"Location": queue_params.path(request)})


def show(request: RequestContext) -> Response:
    """
    Return the queue's metadata. A queue that does not exist is shown with defaults, because its first use creates it.
    """
    with request.app.store.read() as tx:
        found = queue_params.queue(request, tx)
    return Response(200, metadata.visible_metadata(found.metadata if found else {}))


def patch(request: RequestContext) -> Response:
    """Change the metadata with a JSON patch. Raises EntityNotFound, Invalid, Conflict or WriteRefused."""
    if request.media_type != PATCH_TYPE:
        said = f"the body of a PATCH must be of the media type {PATCH_TYPE}"
        return errors.reply(request.raw.scope["path"], 415, "UnsupportedMediaType", said, {"Accept-Patch": PATCH_TYPE})
    name, changes = queue_params.queue_name(request), request.json()

    def do(tx: Tx) -> dict[str, Any]:
        return request.app.messaging.patch_queue(tx, request.project, name, changes)

    return Response(200, metadata.visible_metadata(request.app.store.write(do)))


def delete(request: RequestContext) -> Response:
    """Delete a queue with its messages, claims and subscriptions. Does nothing if the queue does not exist."""
    name = queue_params.queue_name(request)
    request.app.store.write(lambda tx: request.app.messaging.delete_queue(tx, request.project, name))
    return Response(204)


def stats(request: RequestContext) -> Response:
    with request.app.store.read() as tx:
        found = queue_params.queue(request, tx)
        counted = messages.stats(tx, found.id) if found else None
        return Response(200, serializers.stats(counted, queue_params.base(request), tx.now))


def purge(request: RequestContext) -> Response:
    """
    Delete the queue's messages, subscriptions or both, as the body's ``resource_types`` names them; by default both.
    """
    name = queue_params.queue_name(request)
    kinds = _kinds(request.json()) if request.body else list(_KINDS)
    request.app.store.write(lambda tx: request.app.messaging.purge(tx, request.project, name, kinds))
    return Response(204)


def _kinds(said: Any) -> list[str]:
    found = said.get("resource_types") if isinstance(said, dict) else None
    if not isinstance(found, list) or not all(each in _KINDS for each in found):
        raise Invalid(f"resource_types must be a list of some of {', '.join(_KINDS)}")
    return found
