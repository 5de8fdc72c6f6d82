"""Following server-sent events to their end, over broken connections and restarts of the service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stoker_client.errors import Broken
from stoker_client.sse import Event, Parser

if TYPE_CHECKING:
    from stoker_client.wire import Wire

END = "end"  # the event after which nothing comes: a stream that ends without it is asked for again
AGAIN = 1.0  # seconds, unless the service says otherwise
LONGEST = 10.0


def following(wire: Wire, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Event]:
    """What happens from now on until ``end``, which comes last.

    Every question waits out a restarting service. Later ones go on after the last event that had an id; where events
    have none, the service says anew how things are.
    """
    last_id, retry = "", None
    while True:
        parser = Parser(last_id, retry)  # a new one each time: what was half heard comes whole again
        try:
            with wire.stream(path, query, last_id=last_id) as pieces:
                for piece in pieces:
                    for event in parser.feed(piece):
                        yield event
                        if event.name == END:
                            return
        except Broken:
            pass
        last_id, retry = parser.last_id, parser.retry
        time.sleep(min(AGAIN if retry is None else retry, LONGEST))
