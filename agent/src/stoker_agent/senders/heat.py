"""HEAT_SIGNAL: Heat's resource signal API, with the credentials in the config's inputs."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Mapping, Optional

from stoker_agent.keystone import LoginRejected, Session
from stoker_agent.limits import REPORT
from stoker_agent.senders.base import NAME, verdict, with_run_id


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
        body, headers = json.dumps(with_run_id(id, values)).encode(), {"Content-Type": "application/json"}
        try:
            return verdict(self._session.call("orchestration", "POST", self._path, body, headers))
        except LoginRejected as error:
            return str(error)
