"""
ZAQAR_MESSAGE: the document is a message in a queue of this server's own.

It is read, and left there: an answer that is lost on its way takes no document with it. Each look goes on where the one
before ended. The service drops what is stale, and posts what is newest anew before its end.
"""

from __future__ import annotations

import urllib.parse
from typing import Any, List, Mapping, Optional, Tuple

from stoker_agent.queues import opened
from stoker_agent.sources.base import Document, Polled, ca_file, document, parsed, seconds
from stoker_agent.web import Unreachable, Web

#: As many messages as a Zaqar gives at a time.
_PAGE = 20
#: After so many looks one begins at the beginning: a queue that was made anew counts anew.
_WHOLE_LOOK = 20


class Zaqar(Polled):
    name = "zaqar"

    def __init__(self, section: Mapping[str, Any], longest: float, trusted: Optional[str]) -> None:
        super().__init__(Web(ca_file(section, trusted)), longest)
        self._queue = opened(self._web, section, seconds=seconds(section))
        #: Where the next look goes on.
        self._marker = ""
        self._looks = 0
        self._last: List[Any] = []

    def fetch(self, wait: float) -> Optional[Document]:
        newest: List[Any] = []
        self._looks += 1
        if self._looks % _WHOLE_LOOK == 0:
            self._marker = ""
        marker = self._marker
        while True:
            found, following = self._read(marker)
            newest = found[-1:] or newest
            if len(found) < _PAGE or following == marker:
                break
            marker = following
        made = document(newest[0]) if newest and newest != self._last else None
        # Not before: what could not be read to its end is read again.
        self._marker = following
        self._last = newest or self._last
        return made

    def reset(self) -> None:
        self._last, self._marker = [], ""

    def _read(self, marker: str) -> Tuple[List[Any], str]:
        """What the messages after the marker say, in their order, and the marker after them. Raises Unreachable."""
        after = f"&marker={urllib.parse.quote(marker)}" if marker else ""
        answer = self._queue.messages("GET", f"?echo=true&limit={_PAGE}{after}")
        if answer.status == 204:
            return [], marker
        if answer.status != 200:
            raise Unreachable(f"the messaging service answered {answer.said()}")
        said: Any = parsed(answer.body)
        try:
            bodies = [message["body"] for message in said["messages"]]
            following = [link["href"] for link in said.get("links") or [] if link["rel"] == "next"] if bodies else []
        except (KeyError, TypeError, AttributeError):
            raise Unreachable(f"the messages cannot be read: {answer.body[:100]!r}") from None
        for href in following:
            marker = "".join(urllib.parse.parse_qs(urllib.parse.urlsplit(href).query).get("marker", [])[-1:])
        return bodies, marker
