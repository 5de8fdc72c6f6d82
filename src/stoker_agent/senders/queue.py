"""ZAQAR_SIGNAL: a message in a queue of the deployment's own."""

from __future__ import annotations

import json
import uuid
from typing import Any, Mapping, Optional

from stoker_agent.keystone import NotAdmitted
from stoker_agent.queues import Queue
from stoker_agent.senders.base import named, verdict

#: Whoever takes results from the queue may be away for as long; heat-config-notify gives it ten minutes.
_TTL = 3600
#: Zaqar takes 256 KiB at once, with what is around the result.
_LIMIT = 256 * 1024 - 1024


class QueueSignal:
    insists = False
    limit = _LIMIT

    def __init__(self, queue: Queue) -> None:
        self._queue = queue
        self.place = queue.place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        body = json.dumps({"messages": [{"body": named(id, values), "ttl": _TTL}]}).encode()
        # The same for every try of one result, as clients' ids are in Zaqar.
        client = str(uuid.uuid5(uuid.NAMESPACE_URL, id))
        try:
            return verdict(self._queue.messages("POST", "", body, client))
        except NotAdmitted as error:
            return str(error)
