"""ZAQAR_SIGNAL: a message in a queue of the deployment's own."""

from __future__ import annotations

import json
import urllib.parse
import uuid
from typing import Any, Mapping, Optional

from stoker_agent.keystone import NotAdmitted, Session
from stoker_agent.senders.base import named, verdict

#: Whoever takes results from the queue may be away for as long; heat-config-notify gives it ten minutes.
_TTL = 3600
#: Zaqar takes 256 KiB at once, with what is around the result.
_LIMIT = 256 * 1024 - 1024


class QueueSignal:
    insists = False
    limit = _LIMIT

    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._path = f"/v2/queues/{urllib.parse.quote(queue, safe='')}/messages"
        self.place = session.place

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        body = json.dumps({"messages": [{"body": named(id, values), "ttl": _TTL}]}).encode()
        # The same for every try of one result, as clients' ids are in Zaqar.
        client = str(uuid.uuid5(uuid.NAMESPACE_URL, id))
        headers = {
            "Content-Type": "application/json",
            "Client-ID": client,
            "X-Project-Id": self._session.project_id,  # a Zaqar without Keystone knows projects by it alone
        }
        try:
            return verdict(self._session.call("messaging", "POST", self._path, body, headers))
        except NotAdmitted as error:
            return str(error)
