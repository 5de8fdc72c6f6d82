"""Parameters that requests to the messaging API share."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from stoker.http.messaging.access import MOUNTED_AT
from stoker.http.request_context import RequestContext
from stoker.messaging import checks, limits
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.messaging import Queue
from stoker.model.ownership import check_read, check_write
from stoker.store import queues
from stoker.store.tx import Tx

_TRUE = frozenset(("true", "yes", "on", "y", "t", "1"))
_FALSE = frozenset(("false", "no", "off", "n", "f", "0"))


def queue_name(request: RequestContext) -> str:
    """Return the queue's name from the path. Raises Invalid."""
    return checks.queue_name(request.path["queue"])


def queue(request: RequestContext, tx: Tx, *, for_update: bool = False) -> Queue | None:
    """
    Return the path's queue, or None if it does not exist.

    Raises WriteRefused if the request would change a queue that belongs to a server or a deployment.
    """
    found = queues.find(tx, request.project, queue_name(request), for_update=for_update)
    if found is not None and request.raw.method not in ("GET", "HEAD"):
        check_write(found, as_owner=request.as_owner)
    return found


def readable_queue(request: RequestContext, tx: Tx) -> Queue | None:
    """Like ``queue``, for reading messages. Raises Forbidden if the messages are a server's configs or results."""
    found = queue(request, tx)
    if found is not None:
        check_read(found, as_owner=request.as_owner)
    return found


def needed_queue(request: RequestContext, tx: Tx, *, for_update: bool = False) -> Queue:
    """Like ``queue``, but raises EntityNotFound if the queue does not exist."""
    found = queue(request, tx, for_update=for_update)
    if found is None:
        raise EntityNotFound(f"there is no queue {queue_name(request)!r} in this project")
    return found


def client_id(request: RequestContext) -> str:
    """
    Return the UUID by which a client recognizes its own messages. Raises Invalid if the header is missing or malformed.
    """
    said = request.raw.headers.get("client-id")
    if said is None:
        raise Invalid("the header Client-ID is required: a UUID of your own choice")
    try:
        return str(uuid.UUID(said))
    except ValueError:
        raise Invalid(f"the header Client-ID must be a UUID, not {said!r:.100}") from None


def path(request: RequestContext) -> str:
    """Return the path in Zaqar's form: links begin with the version, and clients prepend their endpoint."""
    found: str = request.raw.scope["path"]
    return found.removeprefix(MOUNTED_AT).rstrip("/")


def base(request: RequestContext) -> str:
    """Return the path of the queue in links."""
    return f"/v2/queues/{queue_name(request)}"


def next_link(request: RequestContext, marker: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    """Return a link to the next page. ``names`` are the query parameters that the link repeats."""
    said = {name: request.query[name] for name in names if request.query.get(name)}
    return [{"rel": "next", "href": f"{path(request)}?{urlencode({**said, 'marker': marker})}"}]


def flag(request: RequestContext, name: str) -> bool:
    """Return the boolean parameter; False if it is missing. Raises Invalid."""
    said = request.query.get(name)
    if not said:
        return False
    word = said.lower()
    if word not in _TRUE | _FALSE:
        raise Invalid(f"{name} must be true or false, not {said!r:.100}")
    return word in _TRUE


def whole(request: RequestContext, name: str, most: int = limits.LONGEST_PAGE) -> int | None:
    """Return the integer parameter, from 1 to ``most``; None if it is missing. Raises Invalid."""
    said = request.query.get(name)
    if not said:
        return None
    if not (said.isascii() and said.removeprefix("-").isdecimal() and len(said) <= 20):
        raise Invalid(f"{name} must be a whole number, not {said!r:.100}")
    return checks.whole(int(said), name, 1, most)


def limit(request: RequestContext) -> int:
    """Return the number of entries of a page. Raises Invalid."""
    return whole(request, "limit") or limits.PAGE


def ids(request: RequestContext, name: str) -> list[str] | None:
    """Return the comma-separated ids, at most as many as a page has; None if there are none. Raises Invalid."""
    said = [each for text in request.query.getlist(name) for each in text.split(",") if each]
    if len(said) > limits.LONGEST_PAGE:
        raise Invalid(f"{name} must be at most {limits.LONGEST_PAGE}, not {len(said)}")
    return list(dict.fromkeys(said)) or None
