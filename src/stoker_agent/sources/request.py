"""POLL_TEMP_URL: the document lies in an object that a pre-signed URL opens. The URL is a secret, so never logged."""

from __future__ import annotations

import hashlib
from email.utils import parsedate_to_datetime
from typing import Any, Dict, Mapping, Optional, Tuple

from stoker_agent.sources.base import Document, Polled, ca_file, document, parsed, seconds
from stoker_agent.web import Answer, Unreachable, Web

#: What tells two states of an object apart without reading it: its ETag, else the time it was written.
_State = Tuple[Optional[str], Optional[str]]
_NONE: _State = (None, None)
_SETTLED_SECONDS = 2.0


class Request(Polled):
    name = "request"

    def __init__(self, section: Mapping[str, Any], longest: float, trusted: Optional[str]) -> None:
        super().__init__(Web(ca_file(section, trusted)), longest)
        self._url = str(section["metadata_url"])
        self._seconds = seconds(section)
        self._state = _NONE
        self._digest = b""
        #: Whether the store answers 304; one that does not is asked by HEAD before anything is fetched.
        self._conditional = True

    def fetch(self, wait: float) -> Optional[Document]:
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
        # An object that is there and empty is one that nothing was put into yet.
        found = document(parsed(answer.body) if answer.body.strip() else {})
        self._state, self._digest = state, digest
        return found

    def reset(self) -> None:
        self._state, self._digest = _NONE, b""

    def _conditions(self) -> Dict[str, str]:
        etag, modified = self._state
        if etag is not None:
            return {"If-None-Match": f'"{etag}"'}
        return {} if modified is None else {"If-Modified-Since": modified}

    def _ask(self, verb: str, headers: Optional[Mapping[str, str]] = None) -> Answer:
        answer = self._web.call(verb, self._url, headers=headers, seconds=self._seconds)
        if answer.status not in (200, 304):
            raise Unreachable(f"the object store answered {answer.said()}")
        return answer


def _state(answer: Answer) -> _State:
    """A time of whole seconds counts only where there is no ETag, and once nothing can be written in that second."""
    if answer.etag:
        return answer.etag.strip().strip('"'), None
    said = answer.headers.get("last-modified")
    try:
        now, written = (parsedate_to_datetime(each or "") for each in (answer.headers.get("date"), said))
        old = (now - written).total_seconds() >= _SETTLED_SECONDS
    except (ValueError, TypeError, IndexError):
        old = False
    return (None, said) if old else _NONE
