"""Parameters and representations that requests to the messaging API share. Zaqar's clients know these forms."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec

from stoker.http.messaging.access import MOUNTED_AT
from stoker.http.request import RequestContext
from stoker.json_values import parse_boolean
from stoker.messaging import limits
from stoker.model.embedded import Message, Queue, check_read, check_write
from stoker.model.errors import EntityNotFound, Invalid
from stoker.store import queues
from stoker.store.tx import Tx


def queue_name(request: RequestContext) -> str:
    """Return the queue's name from the path. Raises Invalid."""
    return limits.check_name(request.path["queue"])


def find_queue(request: RequestContext, tx: Tx) -> Queue | None:
    return queues.find(tx, request.project, queue_name(request))


def readable_queue(request: RequestContext, tx: Tx) -> Queue | None:
    """Return the path's queue or None. Raises Forbidden if the messages are a server's configs or results."""
    queue = find_queue(request, tx)
    if queue is not None:
        check_read(queue, as_owner=request.caller.as_owner)
    return queue


def writable_queue(request: RequestContext, tx: Tx, *, for_update: bool = False) -> Queue | None:
    """Return the path's queue or None. Raises WriteRefused if it belongs to a server or a deployment."""
    queue = queues.find(tx, request.project, queue_name(request), for_update=for_update)
    if queue is not None:
        check_write(queue, as_owner=request.caller.as_owner)
    return queue


def require(request: RequestContext, queue: Queue | None) -> Queue:
    """Return the queue. Raises EntityNotFound if there is none."""
    if queue is None:
        raise EntityNotFound(f"there is no queue {queue_name(request)!r} in this project")
    return queue


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


def flag(request: RequestContext, name: str) -> bool:
    """Return a boolean of the query, in the words that Zaqar accepts. Raises Invalid."""
    word = request.query.get(name, "")
    meaning = parse_boolean(word or "no")
    if meaning is None:
        raise Invalid(f"{name} must be true or false, not {word!r:.100}")
    return meaning


def page_size(request: RequestContext, name: str = "limit") -> int:
    """Return a number of entries from the query. Raises Invalid."""
    text = request.query.get(name) or str(limits.PAGE)
    if not (text.isascii() and text.isdecimal() and len(text) <= 9 and 1 <= int(text) <= limits.LONGEST_PAGE):
        raise Invalid(f"{name} must be a whole number from 1 to {limits.LONGEST_PAGE}, not {text!r:.100}")
    return int(text)


def ids(request: RequestContext) -> list[str]:
    """Return the ids of the query's ``ids``, at most as many as a page has. Raises Invalid."""
    named = [id for value in request.query.getlist("ids") for id in value.split(",") if id]
    if len(named) > limits.LONGEST_PAGE:
        raise Invalid(f"ids must be at most {limits.LONGEST_PAGE}, not {len(named)}")
    return list(dict.fromkeys(named))


def path(request: RequestContext) -> str:
    """Return the path in Zaqar's form: links begin with the version, and clients prepend their endpoint."""
    path: str = request.raw.scope["path"]
    return path.removeprefix(MOUNTED_AT).rstrip("/")


def base(request: RequestContext) -> str:
    return f"/v2/queues/{queue_name(request)}"


def next_link(request: RequestContext, marker: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    """Return a link to the next page. ``names`` are the query parameters that the link repeats."""
    repeated = {name: request.query[name] for name in names if request.query.get(name)}
    return [{"rel": "next", "href": f"{path(request)}?{urlencode({**repeated, 'marker': marker})}"}]


def serialize(messages: Iterable[Message], base: str, now: datetime) -> list[dict[str, Any]]:
    """Return messages as Zaqar lists them. ``base`` is the queue's path."""
    return [{**serialize_popped(message, now), "href": f"{base}/messages/{message.id}"} for message in messages]


def serialize_popped(message: Message, now: datetime) -> dict[str, Any]:
    """Return a message without a link, as for one that was removed from its queue."""
    return {
        "id": message.id,
        "ttl": message.ttl,
        "age": max(0, int((now - message.created_at).total_seconds())),
        "body": msgspec.Raw(message.body.encode()),  # the stored JSON text, without decoding it
        "checksum": message.checksum,
    }
