"""Follows server-sent events to their end, across broken connections and restarts of the service."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from stoker_client.errors import Broken
from stoker_client.sse import Event, Parser

if TYPE_CHECKING:
    from stoker_client.wire import Wire

END = "end"  # the last event; a stream that ends without it is requested again
AGAIN = 1.0  # seconds before a new request, unless the service sets ``retry``
LONGEST = 10.0


def follow(wire: Wire, path: str, query: Mapping[str, Any] | None = None) -> Iterator[Event]:
    """
    Yield events from now on up to and including ``end``.

    Each request waits for a service that restarts. Later requests continue after the last event with an id. If events
    have no ids, the service sends the current state again.
    """
    last_id, retry = "", None
    while True:
        # a new parser per connection discards incomplete events, which the service sends again
        parser = Parser(last_id, retry)
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
