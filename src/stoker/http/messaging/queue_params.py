"""Parameters that requests to the messaging API share."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from stoker.http.messaging.access import MOUNTED_AT
from stoker.http.messaging.types import PageLink
from stoker.http.request_context import RequestContext
from stoker.messaging import checks
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.messaging import Queue
from stoker.model.ownership import check_read, check_write
from stoker.store import queues
from stoker.store.tx import Tx


def queue_name(request: RequestContext) -> str:
    """Return the queue's name from the path. Raises Invalid."""
    return checks.queue_name(request.path["queue"])


def queue(request: RequestContext, tx: Tx, *, for_update: bool = False) -> Queue | None:
    """
    Return the path's queue, or None if it does not exist.

    Raises WriteRefused if the request would change a queue that belongs to a server or a deployment.
    """
    queue = queues.find(tx, request.project, queue_name(request), for_update=for_update)
    if queue is not None and request.raw.method not in ("GET", "HEAD"):
        check_write(queue, as_owner=request.as_owner)
    return queue


def readable_queue(request: RequestContext, tx: Tx) -> Queue | None:
    """Like ``queue``, for reading messages. Raises Forbidden if the messages are a server's configs or results."""
    readable = queue(request, tx)
    if readable is not None:
        check_read(readable, as_owner=request.as_owner)
    return readable


def needed_queue(request: RequestContext, tx: Tx, *, for_update: bool = False) -> Queue:
    """Like ``queue``, but raises EntityNotFound if the queue does not exist."""
    existing = queue(request, tx, for_update=for_update)
    if existing is None:
        raise EntityNotFound(f"there is no queue {queue_name(request)!r} in this project")
    return existing


def client_id(request: RequestContext) -> str:
    """
    Return the UUID by which a client recognizes its own messages. Raises Invalid if the header is missing or malformed.
    """
    text = request.raw.headers.get("client-id")
    if text is None:
        raise Invalid("the header Client-ID is required: a UUID of your own choice")
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise Invalid(f"the header Client-ID must be a UUID, not {text!r:.100}") from None


def path(request: RequestContext) -> str:
    """Return the path in Zaqar's form: links begin with the version, and clients prepend their endpoint."""
    path: str = request.raw.scope["path"]
    return path.removeprefix(MOUNTED_AT).rstrip("/")


def base(request: RequestContext) -> str:
    """Return the path of the queue in links."""
    return f"/v2/queues/{queue_name(request)}"


def next_link(request: RequestContext, marker: str, names: tuple[str, ...]) -> list[PageLink]:
    """Return a link to the next page. ``names`` are the query parameters that the link repeats."""
    repeated = {name: request.query[name] for name in names if request.query.get(name)}
    return [PageLink(rel="next", href=f"{path(request)}?{urlencode({**repeated, 'marker': marker})}")]
