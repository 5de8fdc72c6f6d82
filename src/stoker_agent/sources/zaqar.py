"""
ZAQAR_MESSAGE: the document is a message in a queue of this server's own.

Taking a message may be the end of it in the queue, so it is on disk before anything in it begins.
"""

from __future__ import annotations

import hashlib
import json
import logging
import urllib.parse
import uuid
from pathlib import Path
from typing import Any, Mapping, Optional

from stoker_agent.files import write
from stoker_agent.keystone import Login, Session
from stoker_agent.sources.base import Document, Polled, ca_file, document, parsed, seconds
from stoker_agent.web import Unreachable, Web

_log = logging.getLogger("stoker-agent")


class Zaqar(Polled):
    name = "zaqar"

    def __init__(self, section: Mapping[str, Any], longest: float, trusted: Optional[str], state: Path) -> None:
        super().__init__(Web(ca_file(section, trusted)), longest)
        self._session = Session(self._web, Login.of(section), seconds(section))
        queue = str(section["queue_id"])
        self._path = f"/v2/queues/{urllib.parse.quote(queue, safe='')}/messages?pop=1"
        # Of this queue alone: what another one brought is no document of this one's.
        self._kept = state / f"zaqar-{hashlib.sha256(queue.encode()).hexdigest()[:16]}.json"
        # A Zaqar without Keystone knows projects by their header alone.
        self._headers = {"Client-ID": str(uuid.uuid4()), "X-Project-Id": self._session.project_id}
        self._last: Optional[bytes] = None

    def fetch(self, wait: float) -> Optional[Document]:
        body = self._pop()
        if body is None:
            body = self._before() if self._last is None else None
        if body is None or body == self._last:
            return None
        found = document(parsed(body))
        self._last = body
        return found

    def reset(self) -> None:
        self._last = None

    def _pop(self) -> Optional[bytes]:
        """What the oldest message says. Raises Unreachable."""
        answer = self._session.call("messaging", "DELETE", self._path, headers=self._headers)
        if answer.status == 204:
            return None
        if answer.status != 200:
            raise Unreachable(f"the messaging service answered {answer.said()}")
        said: Any = parsed(answer.body)
        try:
            messages = said["messages"]
            body = json.dumps(messages[0]["body"], sort_keys=True).encode() if messages else None
        except (KeyError, TypeError, IndexError):
            raise Unreachable(f"the messages cannot be read: {answer.body[:100]!r}") from None
        if body is not None and body != self._last:
            self._keep(body)
        return body

    def _keep(self, body: bytes) -> None:
        try:
            if body != self._before():
                write(self._kept, body)
        except OSError as error:
            _log.error("cannot keep the document that came by a message: %s", error)

    def _before(self) -> Optional[bytes]:
        """The message that was taken last, by whichever agent of this server."""
        try:
            return self._kept.read_bytes()
        except OSError:
            return None
