"""
ZAQAR_MESSAGE: the document is a message in this server's queue.

The agent reads messages without deleting them, so a lost answer loses no document. Each poll continues after the last
message of the previous one. The service removes outdated messages, and posts the newest again before it expires.
"""

from __future__ import annotations

import logging
import urllib.parse
from typing import Any, List, Mapping, Optional, Tuple

from stoker_agent.queues import open_queue
from stoker_agent.signatures import Unverified, Verifier
from stoker_agent.sources.base import Document, Polled, ca_file, document, parse_json, seconds
from stoker_agent.web import Unreachable, Web

_log = logging.getLogger("stoker-agent")
#: Messages per page; Zaqar's limit.
_PAGE = 20
#: Every so many polls, the agent reads the queue from its beginning, because a recreated queue has new markers.
_WHOLE_LOOK = 20


class Zaqar(Polled):
    """Polls the queue's messages."""

    name = "zaqar"

    def __init__(
        self,
        section: Mapping[str, Any],
        longest: float,
        trusted: Optional[str],
        verifier: Optional[Verifier] = None,
    ) -> None:
        super().__init__(Web(ca_file(section, trusted)), longest)
        self._verifier = verifier
        self._queue = open_queue(self._web, section, seconds=seconds(section))
        #: The position after the last message read.
        self._marker = ""
        self._polls = 0
        self._last: List[Any] = []

    def fetch(self, wait: float) -> Optional[Document]:
        """Read all new messages. Return the newest document, or None if it has not changed. See ``Source``."""
        newest: List[Any] = []
        self._polls += 1
        if self._polls % _WHOLE_LOOK == 0:
            self._marker = ""
        marker = self._marker
        while True:
            bodies, following = self._read(marker)
            newest = self._newest([*newest, *bodies])
            if len(bodies) < _PAGE or following == marker:
                break
            marker = following
        content = document(newest[0]) if newest and newest != self._last else None
        # The marker moves only after the whole read: messages of an incomplete read are read again.
        self._marker = following
        self._last = newest or self._last
        return content

    def reset(self) -> None:
        """Read the queue from its beginning at the next ``fetch``."""
        self._last, self._marker = [], ""

    def _newest(self, bodies: List[Any]) -> List[Any]:
        """
        Return a list with the newest document, or an empty list.

        With a verifier, this is the genuine document with the highest revision, whatever else the queue contains.
        """
        if self._verifier is None:
            return bodies[-1:]
        genuine = []
        for body in bodies:
            try:
                genuine.append((self._verifier.revision(body, self.name), body))
            except Unverified as error:
                _log.warning("message.skipped: a message is skipped: %s", error)
        if not genuine:
            return []
        revision, newest = max(genuine, key=lambda pair: pair[0])
        self._verifier.accept(revision)
        return [newest]

    def _read(self, marker: str) -> Tuple[List[Any], str]:
        """Return the bodies of the messages after ``marker``, in order, and the next marker. Raises Unreachable."""
        after = f"&marker={urllib.parse.quote(marker)}" if marker else ""
        answer = self._queue.messages("GET", f"?echo=true&limit={_PAGE}{after}")
        if answer.status == 204:
            return [], marker
        if answer.status != 200:
            raise Unreachable(f"the messaging service answered {answer.summary()}")
        data: Any = parse_json(answer.body)
        try:
            bodies = [message["body"] for message in data["messages"]]
            following = [link["href"] for link in data.get("links") or [] if link["rel"] == "next"] if bodies else []
        except (KeyError, TypeError, AttributeError):
            raise Unreachable(f"the messages cannot be read: {answer.body[:100]!r}") from None
        for href in following:
            marker = "".join(urllib.parse.parse_qs(urllib.parse.urlsplit(href).query).get("marker", [])[-1:])
        return bodies, marker
