"""ZAQAR_SIGNAL: a message in the deployment's queue."""

from __future__ import annotations

import json
import uuid
from typing import Any, Mapping, Optional

from stoker_agent.keystone import LoginRejected
from stoker_agent.queues import Queue
from stoker_agent.senders.base import verdict, with_run_id

#: Seconds that a message stays in the queue, for a receiver that is down. heat-config-notify uses 600.
_TTL = 3600
#: Zaqar accepts 256 KiB per request; the rest is for the message's envelope.
_LIMIT = 256 * 1024 - 1024


class QueueSignal:
    """Sends results as messages."""

    wants_failure_report = False
    limit = _LIMIT

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.place = queue.place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Post the result to the queue. A rejected login is a permanent refusal. See ``Sender``."""
        body = json.dumps({"messages": [{"body": with_run_id(id, values), "ttl": _TTL}]}).encode()
        # The Client-ID is the same in each retry of a result, because Zaqar identifies clients by it.
        client = str(uuid.uuid5(uuid.NAMESPACE_URL, id))
        try:
            return verdict(self._queue.messages("POST", "", body, client))
        except LoginRejected as error:
            return str(error)
