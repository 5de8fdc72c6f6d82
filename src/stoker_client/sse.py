"""Server-sent events, taken out of the bytes that carry them (WHATWG HTML, "event stream interpretation")."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from stoker_client.errors import BadAnswer

MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True)
class Event:
    """One thing that happened."""

    name: str
    data: str

    def json(self) -> Any:
        """The data, which Stoker always writes as JSON."""
        try:
            return json.loads(self.data)
        except ValueError as problem:
            raise BadAnswer(f"the service's event {self.name!r} is not JSON: {self.data[:80]!r}") from problem


class Parser:
    """Bytes in as they come, whatever their boundaries; events out."""

    def __init__(self, last_id: str = "", retry: float | None = None) -> None:
        self.last_id = last_id
        self.retry = retry  # seconds to wait before asking again, once the service has said so
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._started = False
        self._name = ""
        self._data: list[str] = []
        self._id = last_id

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that ``chunk`` completes."""
        for line in self._lines(self._decoder.decode(chunk)):
            if line:
                self._field(line)
            elif (event := self._dispatched()) is not None:
                yield event

    def _lines(self, text: str) -> Iterator[str]:
        """Whole lines, ended by CR, LF or both. A CR at the end may be half of an ending, so it waits for the next."""
        text = self._rest + text
        if text and not self._started:
            self._started = True
            text = text.removeprefix("\ufeff")
        start = 0
        while (end := _line_end(text, start)) is not None:
            stop, start_of_next = end
            yield text[start:stop]
            start = start_of_next
        self._rest = text[start:]

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry = int(value) / 1000

    def _dispatched(self) -> Event | None:
        """What an empty line ends. An id counts from here on, so that half an event is asked for again."""
        self.last_id = self._id
        name, data = self._name, self._data
        self._name, self._data = "", []
        return Event(name or "message", "\n".join(data)) if data else None


def _line_end(text: str, start: int) -> tuple[int, int] | None:
    """Where the line that begins at ``start`` ends, and where the next one begins."""
    ends = [at for at in (text.find("\n", start), text.find("\r", start)) if at >= 0]
    if not ends:
        return None
    at = min(ends)
    if text[at] == "\n":
        return at, at + 1
    if at + 1 == len(text):
        return None
    return at, at + 2 if text[at + 1] == "\n" else at + 1
