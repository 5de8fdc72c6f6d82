"""CFN_SIGNAL and TEMP_URL_SIGNAL: a pre-signed URL accepts the result. The URL is a secret and never logged."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional

from stoker_agent.limits import REPORT
from stoker_agent.senders.base import NAME, verdict, with_run_id
from stoker_agent.web import Web, host_of


class UrlSignal:
    """Sends results to a pre-signed URL."""

    wants_failure_report = False
    limit = REPORT - NAME

    def __init__(self, web: Web, url: str, verb: str) -> None:
        self._web = web
        self._url = url
        self._verb = "PUT" if verb.upper() == "PUT" else "POST"
        self.place = host_of(url)

    def send(self, id: str, values: Mapping[str, Any]) -> Optional[str]:
        """Send the result to the URL. See ``Sender``."""
        body, headers = json.dumps(with_run_id(id, values)).encode(), {"Content-Type": "application/json"}
        return verdict(self._web.call(self._verb, self._url, body, headers))
