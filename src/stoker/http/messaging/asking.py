"""What requests to this face have in common."""

from __future__ import annotations

import uuid
from urllib.parse import urlencode

from stoker.http.call import Call
from stoker.http.messaging.access import MOUNTED_AT
from stoker.messaging import checks, limits
from stoker.model.errors import EntityNotFound, Invalid
from stoker.model.messaging import Queue
from stoker.store import queues
from stoker.store.tx import Tx

_TRUE = frozenset(("true", "yes", "on", "y", "t", "1"))
_FALSE = frozenset(("false", "no", "off", "n", "f", "0"))


def queue_name(call: Call) -> str:
    """Of the path. Raises Invalid."""
    return checks.queue_name(call.path["queue"])


def queue(call: Call, tx: Tx, *, hold: bool = False) -> Queue | None:
    return queues.find(tx, call.project, queue_name(call), hold=hold)


def needed_queue(call: Call, tx: Tx, *, hold: bool = False) -> Queue:
    """Raises EntityNotFound."""
    found = queue(call, tx, hold=hold)
    if found is None:
        raise EntityNotFound(f"there is no queue {queue_name(call)!r} in this project")
    return found


def client_id(call: Call) -> str:
    """The UUID by which a client knows its own messages. Raises Invalid when there is none."""
    said = call.request.headers.get("client-id")
    if said is None:
        raise Invalid("the header Client-ID is required: a UUID of your own choice")
    try:
        return str(uuid.UUID(said))
    except ValueError:
        raise Invalid(f"the header Client-ID must be a UUID, not {said!r:.100}") from None


def path(call: Call) -> str:
    """The request's, as Zaqar knows it: links begin with the version, and clients put their endpoint before them."""
    found: str = call.request.scope["path"]
    return found.removeprefix(MOUNTED_AT).rstrip("/")


def base(call: Call) -> str:
    """The queue's own path."""
    return f"/v2/queues/{queue_name(call)}"


def next_link(call: Call, marker: str, names: tuple[str, ...]) -> list[dict[str, str]]:
    """The following page, asked for in the same way: ``names`` are the parameters that go on."""
    said = {name: call.query[name] for name in names if call.query.get(name)}
    return [{"rel": "next", "href": f"{path(call)}?{urlencode({**said, 'marker': marker})}"}]


def flag(call: Call, name: str) -> bool:
    """False when it was not said. Raises Invalid."""
    said = call.query.get(name)
    if not said:
        return False
    word = said.lower()
    if word not in _TRUE | _FALSE:
        raise Invalid(f"{name} must be true or false, not {said!r:.100}")
    return word in _TRUE


def whole(call: Call, name: str, most: int = limits.LONGEST_PAGE) -> int | None:
    """From 1 to ``most``; None when it was not said. Raises Invalid."""
    said = call.query.get(name)
    if not said:
        return None
    if not (said.isascii() and said.removeprefix("-").isdecimal() and len(said) <= 20):
        raise Invalid(f"{name} must be a whole number, not {said!r:.100}")
    return checks.whole(int(said), name, 1, most)


def limit(call: Call) -> int:
    return whole(call, "limit") or limits.PAGE


def ids(call: Call, name: str) -> list[str] | None:
    """Separated by commas, at most a page of them; None when none was said. Raises Invalid."""
    said = [each for text in call.query.getlist(name) for each in text.split(",") if each]
    if len(said) > limits.LONGEST_PAGE:
        raise Invalid(f"{name} may be {limits.LONGEST_PAGE} at most, not {len(said)}")
    return list(dict.fromkeys(said)) or None
