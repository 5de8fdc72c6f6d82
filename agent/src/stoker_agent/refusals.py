"""Reports refused documents to Stoker, if this agent is enrolled."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import Optional

from stoker_agent.channel import Channel
from stoker_agent.config import Config
from stoker_agent.web import Unreachable

#: Seconds between two reports: a forged document fails verification at every poll.
_PAUSE = 60.0
_log = logging.getLogger("stoker-agent")


class Refusals:
    """Sends refusals (POST /agent/v1/refusals). With ``config`` None, a refusal appears in the agent's log only."""

    def __init__(self, config: Optional[Config]) -> None:
        self._config = config
        self._next = 0.0

    def report(self, source: str, reason: str) -> None:
        """Report a refused document from a background thread, at most once a minute. A failed report is not retried."""
        if self._config is None or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE
        threading.Thread(target=self._send, args=(self._config, source, reason), name="refusal", daemon=True).start()

    def _send(self, config: Config, source: str, reason: str) -> None:
        channel = Channel(config)
        body = json.dumps({"source": source, "reason": reason}).encode()
        try:
            answer = channel.call("POST", "/agent/v1/refusals", body, {"Content-Type": "application/json"})
            if answer.status != 204:
                _log.warning("refusal.refused: Stoker refuses the report of a refused document: %s", answer.summary())
        except Unreachable as error:
            _log.warning("refusal.not_sent: cannot report a refused document: %s", error)
        finally:
            channel.close()
