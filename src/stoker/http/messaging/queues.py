"""/messaging/v2/queues: queues, and operations on a whole queue."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta

from stoker.http import errors
from stoker.http.contracts import Success, operation
from stoker.http.fields import Absent, Answer, Body, Count, Id, Unchecked
from stoker.http.messaging import queue_params
from stoker.http.messaging.types import PageLink, PageQuery, WordFlag, age
from stoker.http.request_context import RequestContext, Response
from stoker.messaging import limits, metadata
from stoker.model import messaging as model
from stoker.model.errors import Invalid
from stoker.store import messages, queues, rows

PATCH_TYPE = "application/openstack-messaging-v2.0-json-patch"
Contents = Literal["messages", "subscriptions"]


class PatchOperation(Body):
    op: Literal["add", "remove", "replace"]
    path: Annotated[str, Meta(pattern="^/metadata/")]
    value: Any = None


class MetadataPatch(Unchecked):
    schema = list[PatchOperation]


class Purge(Body):
    resource_types: list[Contents] | None = None


class QueueQuery(PageQuery):
    detailed: Annotated[WordFlag, Meta(description="Also the metadata")] = False
    name: Annotated[str, Meta(description="Part of the names")] = ""
    with_count: Annotated[WordFlag, Meta(description="Also the number of all queues")] = False


class QueueEntry(Answer):
    name: Id
    href: str
    metadata: dict[str, Any] | Absent = UNSET


class QueuePage(Answer):
    queues: list[QueueEntry]
    links: list[PageLink]
    count: Count | Absent = UNSET


class MessageRef(Answer):
    age: Count
    created: str
    href: str


class MessageCounts(Answer):
    claimed: Count
    free: Count
    total: Count
    oldest: MessageRef | Absent = UNSET
    newest: MessageRef | Absent = UNSET


@operation(200, QueuePage)
def index(request: RequestContext, query: QueueQuery) -> Response:
    """List the queues of the project."""
    limit, marker = query.limit or limits.PAGE, query.marker or ""
    with request.app.store.read() as tx:
        page = queues.page(tx, request.project, marker=marker, limit=limit, part=query.name)
        count = queues.count(tx, request.project) if query.with_count else 0
    content = QueuePage(
        queues=[_serialize(queue, detailed=query.detailed) for queue in page], links=[], count=count or UNSET
    )
    if page:
        repeated = ("limit", "detailed", "name", "with_count")
        content.links = queue_params.next_link(request, page[-1].name, repeated)
    return Response(200, content)


@operation(201, headers=("Location",), also={204: Success(headers=("Location",))}, body_optional=True)
def put(request: RequestContext, body: dict[str, Any]) -> Response:
    """Create a queue with metadata (201), or return 204 if it exists."""
    name = queue_params.queue_name(request)
    is_new = request.app.store.write(lambda tx: request.app.messaging.create_queue(tx, request.project, name, body))
    return Response(201 if is_new else 204, headers={"Location": queue_params.path(request)})


@operation(200, dict[str, Any])
def show(request: RequestContext) -> Response:
    """
    Return the queue's metadata. A queue that does not exist is shown with defaults, because its first use creates it.
    """
    with request.app.store.read() as tx:
        queue = queue_params.queue(request, tx)
    return Response(200, metadata.visible_metadata(queue.metadata if queue else {}))


@operation(200, dict[str, Any], errors=(409, 415), request_media_type=PATCH_TYPE)
def patch(request: RequestContext, body: MetadataPatch) -> Response:
    """Change the metadata with a JSON patch. Raises EntityNotFound, Invalid, Conflict or WriteRefused."""
    if request.media_type != PATCH_TYPE:
        text = f"the body of a PATCH must be of the media type {PATCH_TYPE}"
        return errors.reply(request.raw.scope["path"], 415, "UnsupportedMediaType", text, {"Accept-Patch": PATCH_TYPE})
    name = queue_params.queue_name(request)
    changed = request.app.store.write(lambda tx: request.app.messaging.patch_queue(tx, request.project, name, body))
    return Response(200, metadata.visible_metadata(changed))


@operation(204)
def delete(request: RequestContext) -> Response:
    """Delete a queue with its messages, claims and subscriptions. Does nothing if the queue does not exist."""
    name = queue_params.queue_name(request)
    request.app.store.write(lambda tx: request.app.messaging.delete_queue(tx, request.project, name))
    return Response(204)


@operation(200, {"messages": MessageCounts})
def stats(request: RequestContext) -> Response:
    """Count the queue's messages."""
    base, counts = queue_params.base(request), MessageCounts(claimed=0, free=0, total=0)
    with request.app.store.read() as tx:
        queue = queue_params.queue(request, tx)
        counted = messages.stats(tx, queue.id) if queue else None

        def ref(message: model.Message | None) -> MessageRef | Absent:
            if message is None:
                return UNSET
            created, href = rows.heat_time(message.created_at), f"{base}/messages/{message.id}"
            return MessageRef(age=age(message, tx.now), created=created, href=href)

        if counted is not None:
            counts = MessageCounts(
                claimed=counted.claimed,
                free=counted.total - counted.claimed,
                total=counted.total,
                oldest=ref(counted.oldest),
                newest=ref(counted.newest),
            )
    return Response(200, {"messages": counts})


@operation(204, body_optional=True)
def purge(request: RequestContext, body: Purge) -> Response:
    """Delete the queue's messages, subscriptions or both: without a body both."""
    kinds = body.resource_types
    if kinds is None:
        if request.body.strip():
            raise Invalid("resource_types is required")
        kinds = ["messages", "subscriptions"]
    name = queue_params.queue_name(request)
    request.app.store.write(lambda tx: request.app.messaging.purge(tx, request.project, name, kinds))
    return Response(204)


def _serialize(queue: model.Queue, *, detailed: bool) -> QueueEntry:
    entry = QueueEntry(name=queue.name, href=f"/v2/queues/{queue.name}")
    if detailed:
        entry.metadata = metadata.visible_metadata(queue.metadata)
    return entry
