"""Stoker's agent API: a long poll that is always open, and results with the server's key (STOKER_SIGNAL)."""

from __future__ import annotations

import logging
import math
from typing import Any, Mapping, Optional, Tuple

from stoker_agent import __version__
from stoker_agent.hook_contract import MODES
from stoker_agent.programs import available
from stoker_agent.reports import REPORT
from stoker_agent.transports.base import STOKER, Document, Making, Sender, Source, document, parse_json
from stoker_agent.web import DOCUMENT, Answer, Channel, Refused, Unreachable

_FIRST_WAIT = 50.0
_log = logging.getLogger("stoker-agent")


class Stoker(Source):
    """Polls GET /agent/v1/document with the last ETag."""

    name = STOKER

    def __init__(self, making: Making) -> None:
        super().__init__({}, making)
        assert making.config is not None, "settings have it only where this agent is enrolled"
        self._web = Channel(making.config)
        self._own_hooks = making.hooks
        self._etag: Optional[str] = None
        self._wait = _FIRST_WAIT
        #: The server's Retry-After: otherwise, the next long poll begins at once.
        self.pause = 0.0
        self._is_pending = False

    def fetch(self, wait: float) -> Optional[Document]:
        """Return the document, or None if it did not change within ``wait`` seconds. See ``Source``."""
        hooks = ",".join(available(self._own_hooks))
        headers = {"X-Stoker-Agent": f"{__version__}; hooks={hooks}; modes={','.join(MODES[1:])}"}
        seconds = 0
        if self._etag is not None:
            headers["If-None-Match"] = self._etag
            seconds = math.ceil(min(wait, self._wait))
        self.pause = 0.0
        answer = self._web.call(
            "GET", f"/agent/v1/document?wait={seconds}", headers=headers, seconds=seconds + 20.0, limit=DOCUMENT
        )
        if answer.status == 200:
            self._wait, content = _document(answer, self._wait)
            self._etag = answer.etag
            return content
        if answer.status == 403 and b"ApprovalPending" in answer.body:
            self._await_approval(wait)
            return None
        if answer.status in (401, 403, 404):
            raise Refused("the server refuses this agent's key: was this server deleted, or enrolled again?")
        if answer.status != 304:
            raise Unreachable(f"the server answered {answer.status}")
        self.pause = answer.retry_after
        return None

    def _await_approval(self, wait: float) -> None:
        """Wait until a user approves this server, at most ``wait`` seconds. Raises Unreachable."""
        if not self._is_pending:
            self._is_pending = True
            _log.warning("approval.pending: this server waits for approval: `stoker server approve`")
        seconds = math.ceil(min(wait, self._wait))
        answer = self._web.call("GET", f"/agent/v1/approval?wait={seconds}", seconds=seconds + 20.0)
        if answer.status in (401, 403, 404):
            raise Refused("the server was not approved: its key is refused")
        if answer.status != 200:
            raise Unreachable(f"the server answered {answer.status}")
        self.pause = answer.retry_after
        if b"PENDING" not in answer.body:
            self._is_pending = False
            _log.info("approval.granted: this server is approved")

    def reset(self) -> None:
        """Return the document at the next ``fetch`` in any case."""
        self._etag = None


def _document(answer: Answer, wait: float) -> Tuple[float, Document]:
    """Return the server's limit for the next poll in seconds, and the document."""
    data: Any = parse_json(answer.body)
    try:
        if isinstance(data["deployments"], list):
            return max(1.0, float(int(data.get("poll_wait", wait)))), document(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise Unreachable(f"the document cannot be read: {answer.body[:100]!r}")


class StokerSignal(Sender):
    """Sends results to Stoker (POST /agent/v1/runs/ID/signal)."""

    wants_failure_report = True
    limit = REPORT

    def __init__(self, channel: Channel) -> None:
        super().__init__(STOKER)
        self._channel = channel

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Report the result. Raises Refused if Stoker rejects the key. See ``Sender``."""
        return self._channel.report("POST", f"/agent/v1/runs/{id}/signal", values)
