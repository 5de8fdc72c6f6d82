"""Heat's API: the metadata of this server's resource (POLL_SERVER_HEAT), and signals to resources (HEAT_SIGNAL)."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Mapping, Optional

from stoker_agent.keystone import LOGIN, Login, LoginRejected, Session
from stoker_agent.reports import REPORT
from stoker_agent.transports.base import (
    NAME,
    Document,
    Making,
    Polled,
    document,
    parse_json,
    with_run_id,
)
from stoker_agent.web import DOCUMENT, JSON, Unreachable


class Heat(Polled):
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


class HeatSignal:
    """Sends results to a stack's resource."""

    wants_failure_report = False
    limit = REPORT - NAME

    def __init__(self, session: Session, stack_id: str, resource_name: str) -> None:
        self._session = session
        stack, name = (urllib.parse.quote(word, safe="/") for word in (stack_id, resource_name))
        self._path = f"/stacks/{stack}/resources/{name}/signal"
        self.place = session.place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Signal the resource. A rejected login is a permanent refusal. See ``Sender``."""
        body = json.dumps(with_run_id(id, values)).encode()
        try:
            return self._session.call("orchestration", "POST", self._path, body, JSON).refusal
        except LoginRejected as error:
            return str(error)
