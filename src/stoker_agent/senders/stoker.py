"""Stoker's own channel, with the server's own key."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from stoker_agent.channel import Channel
from stoker_agent.limits import REPORT
from stoker_agent.senders.base import verdict
from stoker_agent.web import Refused

JSON = {"Content-Type": "application/json"}


class StokerSignal:
    place = "stoker"
    insists = True
    limit = REPORT

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        answer = self._channel.call("POST", f"/agent/v1/runs/{id}/signal", json.dumps(values).encode(), JSON)
        if answer.status == 401:
            raise Refused("the server refuses this agent's key")
        return verdict(answer)
