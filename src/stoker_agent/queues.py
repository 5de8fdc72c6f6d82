"""A queue of Zaqar's, by a signed URL that opens it and nothing else, or by a login."""

from __future__ import annotations

import urllib.parse
import uuid
from typing import Any, Mapping, Optional, Protocol

from stoker_agent.keystone import Login, Session
from stoker_agent.web import SECONDS, Answer, Web, host_of

#: What a section, or ``deploy_`` inputs, say of a signed URL.
SIGNED = ("messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature")
_JSON = "application/json"


class Queue(Protocol):
    #: For logs, and to know that two queues are at the same place.
    place: str

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        """``client``: who posts, as a UUID. Raises Unreachable."""
        ...


class QueueOfLogin:
    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._path = _path(queue)
        self._client = str(uuid.uuid4())
        self.place = session.place

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        headers = {
            "Content-Type": _JSON,
            "Client-ID": client or self._client,
            "X-Project-Id": self._session.project_id,  # a Zaqar without Keystone knows projects by it alone
        }
        return self._session.call("messaging", verb, self._path + query, body, headers)


class SignedQueue:
    def __init__(self, web: Web, said: Mapping[str, Any], prefix: str = "", seconds: float = SECONDS) -> None:
        """Raises KeyError."""
        url, project, paths, methods, expires, signature = (str(said[f"{prefix}{name}"]) for name in SIGNED)
        self._web = web
        self._url = url.rstrip("/") + _path(str(said[f"{prefix}queue_id"]))
        self._client = str(uuid.uuid4())
        self._seconds = seconds
        self._opening = {
            "X-Project-Id": project,
            "URL-Paths": paths,
            "URL-Methods": methods,
            "URL-Expires": expires,
            "URL-Signature": signature,
        }
        self.place = host_of(url)

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        headers = {"Content-Type": _JSON, "Accept": _JSON, "Client-ID": client or self._client, **self._opening}
        return self._web.call(verb, self._url + query, body, headers, self._seconds)


def opened(web: Web, section: Mapping[str, Any], seconds: float) -> Queue:
    """As a section of os-collect-config says. Raises KeyError."""
    if section.get("url_signature"):
        return SignedQueue(web, section, seconds=seconds)
    return QueueOfLogin(Session(web, Login.of(section), seconds), str(section["queue_id"]))


def _path(queue: str) -> str:
    return f"/v2/queues/{urllib.parse.quote(queue, safe='')}/messages"
