"""Heat's API: the metadata of this server's resource (POLL_SERVER_HEAT), and signals to resources (HEAT_SIGNAL)."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Mapping

from stoker_agent.keystone import LOGIN, Login, Session
from stoker_agent.transports.base import Document, Making, Sender, Source, document, parse_json
from stoker_agent.web import DOCUMENT, JSON, Answer, Unreachable


class Heat(Source):
    """Polls the resource's metadata through Heat's API."""

    name = "heat"
    needed = (*LOGIN, "stack_id", "resource_name")

    def __init__(self, section: Mapping[str, Any], making: Making) -> None:
        super().__init__(section, making)
        self._session = Session(self._web, Login.of(section), self._seconds)
        stack, name = (urllib.parse.quote(str(section[key]), safe="/") for key in ("stack_id", "resource_name"))
        self._path = f"/stacks/{stack}/resources/{name}/metadata"

    def read(self) -> bytes:
        """Return the answer with the resource's metadata."""
        answer = self._session.call("orchestration", "GET", self._path, limit=DOCUMENT)
        if answer.status != 200:
            raise Unreachable(f"the server answered {answer.summary()}")
        return answer.body

    def parse(self, content: bytes) -> Document:
        """Return the document in the metadata."""
        data = parse_json(content)
        return document(data.get("metadata") if isinstance(data, dict) else None)


class HeatSignal(Sender):
    """Sends results to a stack's resource."""

    def __init__(self, session: Session, stack_id: str, resource_name: str) -> None:
        super().__init__(session.place)
        self._session = session
        stack, name = (urllib.parse.quote(word, safe="/") for word in (stack_id, resource_name))
        self._path = f"/stacks/{stack}/resources/{name}/signal"

    def post(self, id: str, values: Mapping[str, Any]) -> Answer:
        """Signal the resource."""
        return self._session.call("orchestration", "POST", self._path, json.dumps(values).encode(), JSON)
