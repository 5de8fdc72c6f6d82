"""How the client learns of changes: by requests again and again, at a pace for all, or by server-sent events."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
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
    """One event."""

    name: str
    data: str

    @property
    def subject(self) -> str:
        """What the event is about, such as ``trigger:<id>``. Raises BadAnswer."""
        return str(self._decode().get("subject", ""))

    def json(self) -> Any:
        """Return the data without the subject. Raises BadAnswer."""
        return {name: value for name, value in self._decode().items() if name != "subject"}

    def _decode(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.data))
        except (TypeError, ValueError) as problem:
            raise BadAnswer(f"the service's event {self.name!r} is no JSON object: {self.data[:80]!r}") from problem


class Parser:
    """Incremental parser of the service's streams: receives bytes in arbitrary pieces and yields events."""

    def __init__(self, last_id: str = "", retry: float | None = None) -> None:
        self.last_id = last_id
        self.retry = retry  # seconds before a new request, if the service has set them
        self._rest = b""
        self._event: dict[str, list[str]] = {}

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that ``chunk`` completes."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace").removesuffix("\r")
            if text:
                name, _, value = text.partition(":")
                self._event.setdefault(name, []).append(value.removeprefix(" "))
            else:
                yield from self._end_event()

    def _end_event(self) -> Iterator[Event]:
        """Yield the event that an empty line ends. Its id counts from here on: half an event is requested again."""
        fields, self._event = self._event, {}
        self.last_id = fields.get("id", [self.last_id])[-1]
        if (retry := fields.get("retry", [""])[-1]).isdecimal():
            self.retry = int(retry) / 1000
        if "data" in fields:
            yield Event(fields.get("event", ["message"])[-1], "\n".join(fields["data"]))


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
    last_id, retry = cursor, None
    query = {"subject": subjects, "events": kinds}
    ended: set[str] = set()
    while True:
        # a new parser per connection discards incomplete events, which the service sends again
        parser = Parser(last_id, retry)
        try:
            with wire.stream(EVENTS, query, last_id=last_id) as pieces:
                for event in (event for piece in pieces for event in parser.feed(piece)):
                    if event.name == HELLO:
                        continue
                    yield event
                    if event.name == END:
                        ended.add(event.subject)
                        if ended.issuperset(subjects):
                            return
        except Broken:
            pass
        last_id, retry = parser.last_id, parser.retry
        time.sleep(min(AGAIN if retry is None else retry, LONGEST_RETRY))
