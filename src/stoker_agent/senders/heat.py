"""HEAT_SIGNAL: Heat's signal call, with the login that the config brings."""

from __future__ import annotations

import json
import urllib.parse
from typing import Any, Mapping, Optional

from stoker_agent.keystone import NotAdmitted, Session
from stoker_agent.limits import REPORT
from stoker_agent.senders.base import NAME, named, verdict


class HeatSignal:
    insists = False
    limit = REPORT - NAME

    def __init__(self, session: Session, stack_id: str, resource_name: str) -> None:
        self._session = session
        stack, name = (urllib.parse.quote(each, safe="/") for each in (stack_id, resource_name))
        self._path = f"/stacks/{stack}/resources/{name}/signal"
        self.place = session.place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        body, headers = json.dumps(named(id, values)).encode(), {"Content-Type": "application/json"}
        try:
            return verdict(self._session.call("orchestration", "POST", self._path, body, headers))
        except NotAdmitted as error:
            return str(error)
