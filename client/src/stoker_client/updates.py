"""How the client learns of changes: by requests again and again, at a pace for all, or by server-sent events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stoker_client.errors import BadAnswer, Broken

if TYPE_CHECKING:
    from stoker_client.wire import Wire

#: Seconds between the beginnings of two attempts: at first, and at most unless an attempt takes long.
FIRST, USUAL = 0.1, 1.0
GROWTH = 1.5
#: Longest pause in seconds.
LONGEST = 5.0
#: How many times longer than an attempt the time to the next one is.
SHARE = 5.0


def attempts(until: float = math.inf) -> Iterator[None]:
    """
    Yield for each attempt, and pause between two attempts, up to the time ``until`` (time.monotonic).

    The pauses grow. The attempts take at most a fifth of the time, so that large objects are read less often. Stop with
    ``return`` or ``break``::

        for _ in attempts(time.monotonic() + 60):
            if is_complete():
                break
    """
    pause = FIRST
    while True:
        began = time.monotonic()
        yield
        now = time.monotonic()
        if now >= until:
            return
        next_begin = began + max(pause, (now - began) * SHARE)
        time.sleep(max(min(next_begin - now, LONGEST, until - now), 0))
        pause = min(pause * GROWTH, USUAL)


MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True)
class Event:
    """One event: ``subject`` is what it is about, such as ``trigger:<id>``, and ``data`` the rest of its object."""

    name: str
    subject: str
    data: Any


def split(pieces: Iterable[bytes]) -> Iterator[dict[str, str]]:
    """Yield the fields of each complete block of a stream, whose pieces may be cut anywhere. Lines are joined."""
    rest, fields = b"", dict[str, str]()
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if text := line.decode(errors="replace").removesuffix("\r"):
                name, _, value = text.partition(":")
                value = value.removeprefix(" ")
                fields[name] = f"{fields[name]}\n{value}" if name == "data" and name in fields else value
            else:
                yield fields
                fields = {}


def decode(name: str, text: str) -> Event:
    """Return the event with the JSON object ``text``. Raises BadAnswer."""
    try:
        data = dict(json.loads(text))
    except (TypeError, ValueError) as problem:
        raise BadAnswer(f"the service's event {name!r} is no JSON object: {text[:80]!r}") from problem
    return Event(name, str(data.pop("subject", "")), data)


EVENTS = "/events"  # the path of the stream of any subject, below the project's
HELLO = "hello"  # the first event, with the service's version
END = "end"  # the last event; a stream that ends without it is requested again
AGAIN = 1.0  # seconds before a new request, unless the service sets ``retry``
LONGEST_RETRY = 10.0


def follow(wire: Wire, subjects: Sequence[str], kinds: Sequence[str] = (), cursor: str = "") -> Iterator[Event]:
    """
    Yield events of the subjects, such as ``trigger:<id>``, up to and including the ``end`` of each.

    ``kinds`` selects events; ``cursor`` is that of a list, or of an earlier event. Each request waits for a service
    that restarts. Later requests continue after the last event with an id.
    """
    last_id, retry = cursor, AGAIN
    query = {"subject": subjects, "events": kinds}
    ended: set[str] = set()
    while True:
        try:
            with wire.stream(EVENTS, query, last_id=last_id) as pieces:
                # an incomplete block at the end of a connection is dropped, and the service sends it again
                for fields in split(pieces):
                    last_id = fields.get("id", last_id)
                    if fields.get("retry", "").isdecimal():
                        retry = int(fields["retry"]) / 1000
                    if "data" not in fields or fields.get("event") == HELLO:
                        continue
                    event = decode(fields.get("event", "message"), fields["data"])
                    yield event
                    if event.name == END:
                        ended.add(event.subject)
                        if ended.issuperset(subjects):
                            return
        except Broken:
            pass
        time.sleep(min(retry, LONGEST_RETRY))
