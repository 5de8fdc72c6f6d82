"""STOKER_SIGNAL: Stoker's agent API, with the server's key."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from stoker_agent.channel import Channel
from stoker_agent.limits import REPORT
from stoker_agent.senders.base import verdict
from stoker_agent.web import Refused

JSON = {"Content-Type": "application/json"}


class StokerSignal:
    """Sends results to Stoker (POST /agent/v1/runs/ID/signal)."""

    place = "stoker"
    wants_failure_report = True
    limit = REPORT

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Report the result of the run ``id``. Raises Refused if Stoker rejects the key. See ``Sender``."""
        answer = self._channel.call("POST", f"/agent/v1/runs/{id}/signal", json.dumps(values).encode(), JSON)
        if answer.status == 401:
            raise Refused("the server refuses this agent's key")
        return verdict(answer)
