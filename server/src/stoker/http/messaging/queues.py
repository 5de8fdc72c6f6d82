"""/messaging/v2: versions, queues with their subscriptions, and signed URLs of a queue."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta

from stoker.http.contracts import StrictBody, operation
from stoker.http.messaging import params
from stoker.http.request import RequestContext, Response
from stoker.messaging import limits, signed_urls, subscription_service
from stoker.messaging.signed_urls import SignedUrl
from stoker.model.embedded import Queue, Subscription
from stoker.model.errors import Invalid
from stoker.store import queues
from stoker.store.tx import Tx


class MetadataChange(StrictBody):
    """An operation of a JSON patch on one name of the metadata."""

    op: Literal["add", "remove", "replace"]
    path: Annotated[str, Meta(pattern="^/metadata/[^/]+$")]
    value: Any = None


class Share(StrictBody, forbid_unknown_fields=True):
    paths: list[Literal["messages", "subscriptions"]] | None = None
    methods: list[Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]] | None = None
    expires: str | None = None


@operation(300)
def versions(request: RequestContext) -> dict[str, Any]:
    """List the API versions with complete URLs, because clients that discover versions do not know a base path yet."""
    version = {
        "id": "2",
        "status": "CURRENT",
        "updated": "2014-9-24T04:06:47Z",
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.messaging-v2+json"}],
        "links": [{"rel": "self", "href": f"{request.app.settings.public_url}/messaging/v2/"}],
    }
    return {"versions": [version]}


@operation(200)
def index(request: RequestContext, tx: Tx) -> dict[str, Any]:
    limit, detailed = params.page_size(request), params.flag(request, "detailed")
    marker, part = request.query.get("marker", ""), request.query.get("name", "")
    page = queues.page(tx, request.project, marker, part, limit)
    content: dict[str, Any] = {"queues": [_serialize(tx, queue, detailed=detailed) for queue in page], "links": []}
    if params.flag(request, "with_count"):
        content["count"] = queues.count(tx, request.project)
    if page:
        content["links"] = params.next_link(request, page[-1].name, ("limit", "detailed", "name", "with_count"))
    return content


@operation(201, body_optional=True)
def put(request: RequestContext, tx: Tx, body: dict[str, Any]) -> Response:
    """Create a queue with metadata (201), or return 204 if it exists."""
    is_new = request.app.messaging.create_queue(tx, request.project, params.queue_name(request), body)
    return Response(201 if is_new else 204, headers={"Location": params.path(request)})


@operation(200)
def show(request: RequestContext, tx: Tx) -> dict[str, Any]:
    """
    Return the queue's metadata. A queue that does not exist is shown with defaults, because its first use creates it.
    """
    queue = params.find_queue(request, tx)
    return _show_metadata(tx, queue.metadata if queue else {})


@operation(200)
def patch(request: RequestContext, tx: Tx, body: list[MetadataChange]) -> dict[str, Any]:
    """Set and remove metadata. Raises EntityNotFound, Invalid or WriteRefused."""
    values = {
        change.path.removeprefix("/metadata/").replace("~1", "/").replace("~0", "~"): UNSET
        if change.op == "remove"
        else change.value
        for change in body
    }
    name = params.queue_name(request)
    return _show_metadata(tx, request.app.messaging.update_metadata(tx, request.project, name, values))


@operation(204)
def delete(request: RequestContext, tx: Tx) -> None:
    """Delete a queue with its messages and subscriptions. Does nothing if the queue does not exist."""
    request.app.messaging.delete_queue(tx, request.project, params.queue_name(request))


@operation(200)
def share(request: RequestContext, tx: Tx, body: Share) -> SignedUrl:
    """Return a signed URL for paths and methods of the queue, by default for GET of its messages for a day."""
    base, expires = params.base(request), tx.now + timedelta(seconds=limits.SIGNED_URL_LIFE)
    if body.expires is not None:
        expires = _parse_future(body.expires, tx.now)
    params.writable_queue(request, tx)  # raises WriteRefused for a queue for which a signed URL would be useless
    paths = [f"{base}/{path}" for path in dict.fromkeys(body.paths or ("messages",))]
    methods = list(dict.fromkeys(body.methods or ("GET",)))
    return request.app.messaging.signed_urls.sign(request.project, paths, methods, expires)


def _parse_future(text: str, now: datetime) -> datetime:
    expires = signed_urls.moment(text)
    if expires <= now:
        raise Invalid(f"expires must be in the future, not {text!r:.100}")
    return expires


def _show_metadata(tx: Tx, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a queue with defaults. A template's hidden values in it are redacted."""
    shown: dict[str, Any] = tx.secrets.redact(limits.add_defaults(metadata))
    return shown


def _serialize(tx: Tx, queue: Queue, *, detailed: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": queue.name, "href": f"/v2/queues/{queue.name}"}
    if detailed:
        entry["metadata"] = _show_metadata(tx, queue.metadata)
    return entry


@operation(200)
def index_subscriptions(request: RequestContext, tx: Tx) -> dict[str, Any]:
    queue, marker, limit = params.find_queue(request, tx), request.query.get("marker"), params.page_size(request)
    page: list[Subscription] = []
    if queue is not None:
        after = (queues.subscription_seq(tx, queue.id, marker) or 0) if marker else 0
        page = queues.page_subscriptions(tx, queue.id, after, limit)
    return {
        "subscriptions": [
            _serialize_subscription(tx, subscription, params.queue_name(request)) for subscription in page
        ],
        "links": params.next_link(request, page[-1].id, ("limit",)) if page else [],
    }


@operation(201, body_optional=True)
def create_subscription(request: RequestContext, body: dict[str, Any]) -> Response:
    """Subscribe a URL to the queue, and create the queue if necessary. Raises Invalid, Conflict or WriteRefused."""
    name, service = params.queue_name(request), request.app.messaging
    service.subscriptions.check(body)

    def do(tx: Tx) -> str:
        return service.subscriptions.subscribe(tx, service.lock_or_create(tx, request.project, name), body)

    id = request.write(do)
    return Response(201, {"subscription_id": id}, headers={"Location": params.path(request)})


@operation(200)
def show_subscription(request: RequestContext, tx: Tx) -> dict[str, Any]:
    queue = params.require(request, params.find_queue(request, tx))
    subscription = subscription_service.find(tx, queue, request.path["subscription_id"])
    return _serialize_subscription(tx, subscription, queue.name)


@operation(204, body_optional=True)
def change_subscription(request: RequestContext, body: dict[str, Any]) -> Response:
    """Change a subscription. Raises EntityNotFound, Invalid or Conflict."""
    service = request.app.messaging.subscriptions
    service.check(body)

    def do(tx: Tx) -> None:
        queue = params.require(request, params.writable_queue(request, tx, for_update=True))
        service.change(tx, queue, request.path["subscription_id"], body)

    request.write(do)
    return Response(204, headers={"Location": params.path(request)})


@operation(204)
def delete_subscription(request: RequestContext, tx: Tx) -> None:
    """Delete a subscription. Does nothing if the subscription does not exist."""
    queue = params.writable_queue(request, tx)
    if queue is not None:
        queues.delete_subscription(tx, queue.id, request.path["subscription_id"])


def _serialize_subscription(tx: Tx, subscription: Subscription, queue_name: str) -> dict[str, Any]:
    return {
        "id": subscription.id,
        "source": queue_name,
        "subscriber": tx.secrets.redact(subscription.subscriber),
        "ttl": subscription.ttl,
        "age": int((tx.now - subscription.renewed_at).total_seconds()),
        "options": tx.secrets.redact(subscription.options),
        "confirmed": False,  # as in a Zaqar that requires no confirmation
    }
