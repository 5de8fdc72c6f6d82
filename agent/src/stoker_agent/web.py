"""The agent's HTTP client, with one persistent connection per host."""

from __future__ import annotations

import http.client
import json
import re
import socket
import ssl
import time
import urllib.parse
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from stoker_agent import __version__
from stoker_agent.config import Config
from stoker_agent.proxy import find_proxy

SECONDS = 20.0
#: The headers of a request with a JSON body.
JSON = {"Content-Type": "application/json"}
#: The time limit for connecting, whatever the time limit of the answer.
_CONNECT_SECONDS = 10.0
#: Number of hosts with a persistent connection.
_KEPT = 4
_REDIRECTS = 5
_MOVED = (301, 302, 303, 307, 308)
#: Headers with credentials. A redirect to another host, or from https to http, drops them.
_SECRET = ("authorization", "x-auth-token", "url-signature")


class Unreachable(Exception):
    """The service gave no answer, or asks for a later retry."""

    #: Seconds that the service asks to wait before the next request; 0 without a request.
    retry_after = 0.0


class Busy(Unreachable):
    """The service is reachable and asks for a later retry."""

    def __init__(self, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class Refused(Unreachable):
    """The service rejects the agent; an early retry is pointless."""


#: The longest pause in seconds that a service may request, before its jitter.
_LONGEST_PAUSE = 240.0
#: Statuses whose Retry-After is a request to send less.
_OVERLOADED = (429, 503)


class Limit(NamedTuple):
    """The largest answer to a request. ``what`` names its content in errors."""

    what: str
    most: int
    #: Whether the time limit of the request is that of the whole answer, not only of the wait for it.
    is_timed: bool = False


_MIB = 1024 * 1024
ANSWER = Limit("the answer", 16 * _MIB)
#: A document has all configs of a server, each of at most 1 MiB.
DOCUMENT = Limit("the document", 64 * _MIB)


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    #: By lower-case name.
    headers: Mapping[str, str]
    body: bytes

    @property
    def etag(self) -> Optional[str]:
        """The ETag header, or None."""
        return self.headers.get("etag")

    @property
    def retry_after(self) -> float:
        """Seconds that the server asks to wait, at most four minutes; 0 without a request."""
        value = self.headers.get("retry-after", "")
        return min(float(value), _LONGEST_PAUSE) if value.isascii() and value.isdecimal() else 0.0

    def json(self) -> Any:
        """Decode the body. Raises ValueError."""
        return json.loads(self.body)

    @property
    def refusal(self) -> Optional[str]:
        """Why the receiver refuses a report for good, or None. 404 and 410 mean that it has no use for the report."""
        return None if 200 <= self.status < 300 or self.status in (404, 410) else self.summary()

    def summary(self) -> str:
        """Return the status and the beginning of the body, for a log line."""
        return " ".join(f"{self.status} {self.body[:300].decode('utf-8', 'replace')}".split())


_UNSENDABLE = re.compile("[^!-~]")
#: Scheme, host and port.
Place = Tuple[str, str, Optional[int]]


class Web:
    """
    Sends requests. Not safe for use by several threads.

    ``ca_file`` is a file of trusted certificates; with None, the system's certificates are trusted. ``base`` precedes
    the URLs of all requests, and ``headers`` are in all of them.
    """

    def __init__(
        self, ca_file: Optional[str] = None, base: str = "", headers: Optional[Mapping[str, str]] = None
    ) -> None:
        self._ca_file = ca_file
        self._base = base
        self._headers = {"User-Agent": f"stoker-agent/{__version__}", **(headers or {})}
        self._tls: Optional[ssl.SSLContext] = None
        self._connections: Dict[Place, http.client.HTTPConnection] = {}

    def call(
        self,
        verb: str,
        url: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        seconds: float = SECONDS,
        limit: Limit = ANSWER,
    ) -> Answer:
        """
        Send a request and return the answer, whatever its status below 500. Redirects are followed for GET and HEAD.

        ``seconds`` limits the wait for the answer. Raises Unreachable without an answer, Busy for 408, 429 and 5xx
        (with the Retry-After of 429 and 503), and Refused for an answer above the limit.
        """
        url, sent = self._base + url, {**self._headers, **(headers or {})}
        for _ in range(_REDIRECTS + 1):
            answer = self._call(verb, url, body, sent, seconds, limit)
            if answer.status not in _MOVED or verb not in ("GET", "HEAD") or "location" not in answer.headers:
                return answer
            target = urllib.parse.urljoin(url, answer.headers["location"])
            if not _may_have_secrets(url, target):
                sent = {name: value for name, value in sent.items() if name.lower() not in (*_SECRET, "host")}
            url = target
        raise Unreachable("the server sends from one address to the next without end")

    def close(self) -> None:
        """Close all connections. A later call opens them again."""
        while self._connections:
            self._connections.popitem()[1].close()

    def _call(
        self,
        verb: str,
        url: str,
        body: Optional[bytes],
        headers: Mapping[str, str],
        seconds: float,
        limit: Limit,
    ) -> Answer:
        place, path = _parts(url)
        kept = place in self._connections
        try:
            answer = self._exchange(place, verb, path, body, headers, seconds, limit)
        except (http.client.HTTPException, OSError, ValueError) as error:
            self._drop(place)
            if isinstance(error, ssl.SSLError):
                self._tls = None  # the CA file may be replaced by the next attempt
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                # The error's text would contain the header, which may be a secret.
                raise Unreachable("a header has characters in it that cannot be sent") from None
            if not kept or isinstance(error, socket.timeout):
                raise Unreachable(f"{type(error).__name__}: {error}") from None
            # The server may have closed an idle connection, so the request is repeated on a new one.
            return self._call(verb, url, body, headers, seconds, limit)
        if answer.status >= 500 or answer.status in (408, 429):
            retry_after = answer.retry_after if answer.status in _OVERLOADED else 0.0
            raise Busy(f"the server answered {answer.status}", retry_after)
        return answer

    def _exchange(
        self,
        place: Place,
        verb: str,
        path: str,
        body: Optional[bytes],
        headers: Mapping[str, str],
        seconds: float,
        limit: Limit,
    ) -> Answer:
        connection = self._connections.get(place)
        if connection is None:
            connection = self._connect(place)
        if connection.sock is None:
            connection.timeout = min(seconds, _CONNECT_SECONDS)
            connection.connect()
        connection.sock.settimeout(seconds)
        proxy = find_proxy(*place[:2]) if place[0] == "http" else None
        if proxy:
            path, headers = f"http://{_authority(place)}{path}", {**headers, **proxy.headers}
        connection.request(verb, path, body, dict(headers))
        response = connection.getresponse()
        received = {name.lower(): value for name, value in response.getheaders()}
        content = _read(response, limit, seconds)
        if content is None:
            self._drop(place)
            raise Refused(f"{limit.what} of {_authority(place)} has more than {limit.most} bytes")
        return Answer(response.status, received, content)

    def _connect(self, place: Place) -> http.client.HTTPConnection:
        while len(self._connections) >= _KEPT:
            self._drop(next(iter(self._connections)))
        if place[0] == "https" and self._tls is None:
            self._tls = create_context(self._ca_file)
        self._connections[place] = create_connection(place, self._tls)
        return self._connections[place]

    def _drop(self, place: Place) -> None:
        connection = self._connections.pop(place, None)
        if connection is not None:
            connection.close()


class Channel(Web):
    """Calls Stoker's agent API, by paths below its URL. Not safe for use by several threads."""

    def __init__(self, config: Config) -> None:
        key = {"Authorization": f"Bearer {config.key}"} if config.key else {}
        super().__init__(config.ca_file, config.url.rstrip("/"), key)

    def report(self, verb: str, path: str, body: Mapping[str, Any]) -> Optional[str]:
        """
        Send JSON to ``path``. Return None if Stoker accepts it, or has no use for it, else why Stoker refuses it.

        Raises Unreachable if it must be sent again, and Refused if Stoker rejects this agent's key.
        """
        answer = self.call(verb, path, json.dumps(body).encode(), JSON)
        if answer.status in (401, 403):
            raise Refused("the server refuses this agent's key")
        return answer.refusal


def call_once(
    config: Config, verb: str, path: str, body: Optional[Mapping[str, Any]] = None, seconds: float = SECONDS
) -> Answer:
    """Send one request, with the JSON ``body``, on a connection of its own. See ``Web.call``."""
    channel = Channel(config)
    try:
        return channel.call(verb, path, None if body is None else json.dumps(body).encode(), JSON, seconds)
    finally:
        channel.close()


def create_connection(place: Place, tls: Optional[ssl.SSLContext]) -> http.client.HTTPConnection:
    """Return a connection to a scheme, host and port, through the proxy for them, that is not open yet."""
    scheme, host, port = place
    proxy = find_proxy(scheme, host)
    to_host, to_port = (proxy.host, proxy.port) if proxy else (host, port)
    if scheme == "http":
        return http.client.HTTPConnection(to_host, to_port)
    connection = http.client.HTTPSConnection(to_host, to_port, context=tls)
    if proxy:
        connection.set_tunnel(host, port, headers=proxy.headers)
    return connection


def create_context(ca: Optional[str]) -> ssl.SSLContext:
    """Return the settings of TLS that trust the certificates in the file or directory ``ca``, else the system's."""
    if ca and Path(ca).is_dir():
        return ssl.create_default_context(capath=ca)
    return ssl.create_default_context(cafile=ca)


def _authority(place: Place) -> str:
    _, host, port = place
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def _read(response: http.client.HTTPResponse, limit: Limit, seconds: float) -> Optional[bytes]:
    """Return the body, or None if it is above the limit. Raises socket.timeout."""
    if response.length is not None and response.length > limit.most:
        return None
    until, content = time.monotonic() + seconds, bytearray()
    while len(content) <= limit.most:
        chunk = response.read(min(65536, limit.most + 1 - len(content)))
        content += chunk
        if not chunk:
            return bytes(content)
        if limit.is_timed and time.monotonic() > until:
            raise socket.timeout("the answer takes too long")
    return None


def _may_have_secrets(former: str, target: str) -> bool:
    """Whether a redirect keeps the headers with credentials: to the same host, and not from https to http."""
    return _netloc(target) == _netloc(former) and not (
        former.lower().startswith("https:") and not target.lower().startswith("https:")
    )


def host_of(url: str) -> str:
    """Return the URL's host and port, as in a Host header. Log lines use it for URLs that are secrets."""
    return _netloc(url).rpartition("@")[2]


def _netloc(url: str) -> str:
    try:
        return urllib.parse.urlsplit(url).netloc
    except ValueError:
        return ""


def _parts(url: str) -> Tuple[Place, str]:
    """Return the target to connect to, and the request path. Raises Unreachable for an invalid URL."""
    try:
        parts = urllib.parse.urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise Unreachable("the URL cannot be read") from None
    if parts.scheme not in ("http", "https") or not host:
        raise Unreachable("the URL is none of HTTP")
    if _UNSENDABLE.search(url):
        raise Unreachable("the URL has characters in it that cannot be sent")
    path = parts.path or "/"
    return (parts.scheme, host, port), f"{path}?{parts.query}" if parts.query else path
