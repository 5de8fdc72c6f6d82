"""CFN_SIGNAL and TEMP_URL_SIGNAL: a pre-signed URL takes the result. The URL is a secret, so never logged."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from stoker_agent.limits import REPORT
from stoker_agent.senders.base import NAME, named, verdict
from stoker_agent.web import Web, host_of


class UrlSignal:
    insists = False
    limit = REPORT - NAME

    def __init__(self, web: Web, url: str, verb: str) -> None:
        self._web = web
        self._url = url
        self._verb = "PUT" if verb.upper() == "PUT" else "POST"
        self.place = host_of(url)

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        body, headers = json.dumps(named(id, values)).encode(), {"Content-Type": "application/json"}
        return verdict(self._web.call(self._verb, self._url, body, headers))
