"""
Zaqar: documents are messages in this server's queue (ZAQAR_MESSAGE), results in the deployment's (ZAQAR_SIGNAL).

The agent reads messages without deleting them, so a lost answer loses no document. Each poll continues after the last
message of the previous one. The service removes outdated messages, and posts the newest again before it expires.
"""

from __future__ import annotations

import json
import logging
import urllib.parse
import uuid
from typing import Any, List, Mapping, Optional, Tuple, Union

from stoker_agent.keystone import LOGIN, Login, Session
from stoker_agent.signatures import Unverified
from stoker_agent.transports.base import Document, Making, Sender, Source, document, parse_json
from stoker_agent.web import SECONDS, Answer, Limit, Unreachable, Web, host_of

_log = logging.getLogger("stoker-agent")
_JSON = "application/json"
#: The keys of a pre-signed URL in a section, or in inputs with the prefix ``deploy_``.
_SIGNED = ("messaging_url", "project_id", "url_paths", "url_methods", "url_expires", "url_signature")
#: An answer may have several documents.
_MESSAGES = Limit("the messages", 64 * 1024 * 1024)
#: Messages per page; Zaqar's limit.
_PAGE = 20
#: Every so many polls, the agent reads the queue from its beginning, because a recreated queue has new markers.
_WHOLE_LOOK = 20


class QueueOfLogin:
    """A queue that the agent accesses with a Keystone login."""

    def __init__(self, session: Session, queue: str) -> None:
        self._session = session
        self._path = _path(queue)
        self._client = str(uuid.uuid4())
        self.place = session.place

    def messages(self, verb: str, query: str, body: Optional[bytes] = None, client: Optional[str] = None) -> Answer:
        """
        Call the queue's ``messages`` resource with the session's token. Raises Unreachable.

        ``client`` is the Client-ID, a UUID.
        """
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
        url, project, paths, methods, expires, signature = (str(section[f"{prefix}{name}"]) for name in _SIGNED)
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


#: A queue. Its ``place`` is the service's host, for log lines and for the retry pause of this target.
Queue = Union[QueueOfLogin, SignedQueue]


def open_queue(web: Web, section: Mapping[str, Any], seconds: float) -> Queue:
    """Open the queue that a section of os-collect-config describes. Raises KeyError for a missing key."""
    if section.get("url_signature"):
        return SignedQueue(web, section, seconds=seconds)
    return QueueOfLogin(Session(web, Login.of(section), seconds), str(section["queue_id"]))


def _path(queue: str) -> str:
    return f"/v2/queues/{urllib.parse.quote(queue, safe='')}/messages"


class Zaqar(Source):
    """Polls the queue's messages."""

    name = "zaqar"
    needed = (*LOGIN, "queue_id")

    def __init__(self, section: Mapping[str, Any], making: Making) -> None:
        super().__init__(section, making)
        self._queue = open_queue(self._web, section, self._seconds)
        #: The position after the last message read.
        self._marker = ""
        self._polls = 0
        self._last: List[Any] = []

    @classmethod
    def missing(cls, section: Mapping[str, Any]) -> List[str]:
        """As in ``Source``. A pre-signed URL takes the place of a login."""
        if section.get("url_signature"):
            return [key for key in ("queue_id", *_SIGNED) if section.get(key) in (None, "", [])]
        return super().missing(section)

    def fetch(self, wait: float) -> Optional[Document]:
        """Read all new messages. Return the newest document, or None if it has not changed. See ``Source``."""
        newest: List[Any] = []
        self._polls += 1
        if self._polls % _WHOLE_LOOK == 0:
            self._marker = ""
        marker = self._marker
        while True:
            bodies, following = self._read(marker)
            newest = self._newest([*newest, *bodies])
            if len(bodies) < _PAGE or following == marker:
                break
            marker = following
        content = document(newest[0]) if newest and newest != self._last else None
        # The marker moves only after the whole read: messages of an incomplete read are read again.
        self._marker = following
        self._last = newest or self._last
        return content

    def reset(self) -> None:
        """Read the queue from its beginning at the next ``fetch``."""
        self._last, self._marker = [], ""

    def _newest(self, bodies: List[Any]) -> List[Any]:
        """
        Return a list with the newest document, or an empty list.

        With a verifier, this is the genuine document with the highest revision, whatever else the queue contains.
        """
        if self._verifier is None:
            return bodies[-1:]
        genuine = []
        for body in bodies:
            try:
                genuine.append((self._verifier.revision(body, self.name), body))
            except Unverified as error:
                _log.warning("message.skipped: a message is skipped: %s", error)
        if not genuine:
            return []
        revision, newest = max(genuine, key=lambda pair: pair[0])
        self._verifier.accept(revision)
        return [newest]

    def _read(self, marker: str) -> Tuple[List[Any], str]:
        """Return the bodies of the messages after ``marker``, in order, and the next marker. Raises Unreachable."""
        after = f"&marker={urllib.parse.quote(marker)}" if marker else ""
        answer = self._queue.messages("GET", f"?echo=true&limit={_PAGE}{after}")
        if answer.status == 204:
            return [], marker
        if answer.status != 200:
            raise Unreachable(f"the messaging service answered {answer.summary()}")
        data: Any = parse_json(answer.body)
        try:
            bodies = [message["body"] for message in data["messages"]]
            following = [link["href"] for link in data.get("links") or [] if link["rel"] == "next"] if bodies else []
        except (KeyError, TypeError, AttributeError):
            raise Unreachable(f"the messages cannot be read: {answer.body[:100]!r}") from None
        for href in following:
            marker = "".join(urllib.parse.parse_qs(urllib.parse.urlsplit(href).query).get("marker", [])[-1:])
        return bodies, marker


#: Seconds that a message stays in the queue, for a receiver that is down. heat-config-notify uses 600.
_TTL = 3600
#: Zaqar accepts 256 KiB per request; the rest is for the message's envelope.
_LIMIT = 256 * 1024 - 1024


class QueueSignal(Sender):
    """Sends results as messages."""

    limit = _LIMIT

    def __init__(self, queue: Queue) -> None:
        super().__init__(queue.place)
        self._queue = queue

    def post(self, id: str, values: Mapping[str, Any]) -> Answer:
        """Post the result to the queue."""
        body = json.dumps({"messages": [{"body": values, "ttl": _TTL}]}).encode()
        # The Client-ID is the same in each retry of a result, because Zaqar identifies clients by it.
        return self._queue.messages("POST", "", body, str(uuid.uuid5(uuid.NAMESPACE_URL, id)))
