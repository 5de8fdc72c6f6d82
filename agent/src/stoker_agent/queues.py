"""Access to a Zaqar queue, by a pre-signed URL or by a login."""

from __future__ import annotations

import urllib.parse
import uuid
from typing import Any, Mapping, Optional, Protocol

from stoker_agent.keystone import Login, Session
from stoker_agent.sources import SIGNED
from stoker_agent.web import SECONDS, Answer, Limit, Web, host_of

_JSON = "application/json"
#: An answer may have several documents.
_MESSAGES = Limit("the messages", 64 * 1024 * 1024)


class Queue(Protocol):
    """A Zaqar queue."""

    #: The service's host, for log lines and for the retry pause of this target.
    place: str

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        """Call the queue's ``messages`` resource. ``client`` is the Client-ID, a UUID. Raises Unreachable."""
        ...


class QueueOfLogin:
    """A queue that the agent accesses with a Keystone login."""

    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._path = _path(queue)
        self._client = str(uuid.uuid4())
        self.place = session.place

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        """Call the queue's ``messages`` resource with the session's token. Raises Unreachable."""
        headers = {
            "Content-Type": _JSON,
            "Client-ID": client or self._client,
            "X-Project-Id": self._session.project_id,  # without Keystone, Zaqar identifies the project by this header
        }
        return self._session.call("messaging", verb, self._path + query, body, headers, _MESSAGES)


class SignedQueue:
    """A queue that the agent accesses with a pre-signed URL."""

    def __init__(self, web: Web, section: Mapping[str, Any], prefix: str = "", seconds: float = SECONDS) -> None:
        """Read the URL from a section, or from inputs with ``prefix``. Raises KeyError for a missing key."""
        url, project, paths, methods, expires, signature = (str(section[f"{prefix}{name}"]) for name in SIGNED)
        self._web = web
        self._url = url.rstrip("/") + _path(str(section[f"{prefix}queue_id"]))
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
        """Call the queue's ``messages`` resource with the signature's headers. Raises Unreachable."""
        headers = {"Content-Type": _JSON, "Accept": _JSON, "Client-ID": client or self._client, **self._opening}
        return self._web.call(verb, self._url + query, body, headers, self._seconds, _MESSAGES)


def open_queue(web: Web, section: Mapping[str, Any], seconds: float) -> Queue:
    """Open the queue that a section of os-collect-config describes. Raises KeyError for a missing key."""
    if section.get("url_signature"):
        return SignedQueue(web, section, seconds=seconds)
    return QueueOfLogin(Session(web, Login.of(section), seconds), str(section["queue_id"]))


def _path(queue: str) -> str:
    return f"/v2/queues/{urllib.parse.quote(queue, safe='')}/messages"
