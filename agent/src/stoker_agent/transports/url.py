"""
Pre-signed URLs: an object with the document (POLL_TEMP_URL), URLs that take results (CFN_SIGNAL, TEMP_URL_SIGNAL).

The URLs are secrets and never logged.
"""

from __future__ import annotations

import hashlib
import json
from email.utils import parsedate_to_datetime
from typing import Any, Dict, Mapping, Optional, Tuple

from stoker_agent.transports.base import Document, Making, Sender, Source, parse_json, read_carried
from stoker_agent.web import DOCUMENT, JSON, Answer, Unreachable, Web, host_of

#: Identifies an object's state without reading it: by its ETag, else by its modification time.
_State = Tuple[Optional[str], Optional[str]]
_NONE: _State = (None, None)
_SETTLED_SECONDS = 2.0


class Request(Source):
    """Polls an object with conditional requests."""

    name = "request"
    needed = ("metadata_url",)

    def __init__(self, section: Mapping[str, Any], making: Making) -> None:
        super().__init__(section, making)
        self._url = str(section["metadata_url"])
        self._state = _NONE
        self._digest = b""
        #: Whether the store answers 304. If not, a HEAD request precedes each GET.
        self._conditional = True

    def fetch(self, wait: float) -> Optional[Document]:
        """Return the document in the object, or None if it has not changed. See ``Source``."""
        if not self._conditional and self._state != _NONE and _state(self._ask("HEAD")) == self._state:
            return None
        answer = self._ask("GET", self._conditions())
        if answer.status == 304:
            return None
        state, digest = _state(answer), hashlib.sha256(answer.body).digest()
        if digest == self._digest:
            self._conditional = self._conditional and state != self._state
            self._state = state
            return None
        # An empty object means that no document was published yet. The state of a refused document is not recorded: the
        # next poll reads it again, and the failures make another source take over.
        content = read_carried(parse_json(answer.body) if answer.body.strip() else {}, self._verifier, self.name)
        self._state, self._digest = state, digest
        return content

    def reset(self) -> None:
        """Return the document at the next ``fetch`` in any case."""
        self._state, self._digest = _NONE, b""

    def _conditions(self) -> Dict[str, str]:
        etag, modified = self._state
        if etag is not None:
            return {"If-None-Match": f'"{etag}"'}
        return {} if modified is None else {"If-Modified-Since": modified}

    def _ask(self, verb: str, headers: Optional[Mapping[str, str]] = None) -> Answer:
        answer = self._web.call(verb, self._url, headers=headers, seconds=self._seconds, limit=DOCUMENT)
        if answer.status not in (200, 304):
            raise Unreachable(f"the object store answered {answer.summary()}")
        return answer


def _state(answer: Answer) -> _State:
    """
    Return the object's state, or ``_NONE`` if the headers cannot identify it.

    A modification time has a resolution of one second. It counts only without an ETag, and only when it is at least two
    seconds old, so that no later write can have the same time.
    """
    if answer.etag:
        return answer.etag.strip().strip('"'), None
    modified = answer.headers.get("last-modified")
    try:
        now, written = (parsedate_to_datetime(date or "") for date in (answer.headers.get("date"), modified))
        old = (now - written).total_seconds() >= _SETTLED_SECONDS
    except (ValueError, TypeError, IndexError):
        old = False
    return (None, modified) if old else _NONE


class UrlSignal(Sender):
    """Sends results to a pre-signed URL."""

    def __init__(self, web: Web, url: str, verb: str) -> None:
        super().__init__(host_of(url))
        self._web = web
        self._url = url
        self._verb = "PUT" if verb.upper() == "PUT" else "POST"

    def post(self, id: str, values: Mapping[str, Any]) -> Answer:
        """Send the result to the URL."""
        return self._web.call(self._verb, self._url, json.dumps(values).encode(), JSON)
