"""The way to the server: one kept connection for each thread that talks."""

from __future__ import annotations

import http.client
import json
import random
import socket
import ssl
import urllib.parse
from typing import Any, Dict, Mapping, NamedTuple, Optional

from stoker_agent import __version__
from stoker_agent.config import Config

_CONNECT_SECONDS = 20.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 30.0


class Unreachable(Exception):
    """No answer, or one that says to come back later."""


class Busy(Unreachable):
    """The server is there, and says to come back later."""


class Answer(NamedTuple):
    status: int
    etag: Optional[str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Channel:
    """Not to be shared between threads."""

    def __init__(self, config: Config) -> None:
        parts = urllib.parse.urlsplit(config.url)
        self._host = parts.hostname or ""
        self._port = parts.port
        self._tls = ssl.create_default_context(cafile=config.ca_file) if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        self._key = config.key
        self._connection: Optional[http.client.HTTPConnection] = None

    def call(
        self,
        verb: str,
        path: str,
        body: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        seconds: float = _CONNECT_SECONDS,
    ) -> Answer:
        """Raises Unreachable; any other answer, errors too, is returned."""
        sent: Dict[str, str] = {"User-Agent": f"stoker-agent/{__version__}", **(headers or {})}
        if self._key:
            sent["Authorization"] = f"Bearer {self._key}"
        kept = self._connection is not None
        try:
            answer = self._exchange(verb, path, body, sent, seconds)
        except (http.client.HTTPException, OSError) as error:
            self.close()
            if not kept or isinstance(error, socket.timeout):
                raise Unreachable(f"{type(error).__name__}: {error}") from None
            # A kept connection may have been closed by the other side meanwhile: that says nothing yet.
            return self.call(verb, path, body, headers, seconds)
        if answer.status >= 500 or answer.status == 429:
            raise Busy(f"the server answered {answer.status}")
        return answer

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _exchange(
        self, verb: str, path: str, body: Optional[bytes], headers: Mapping[str, str], seconds: float
    ) -> Answer:
        connection = self._connection
        if connection is None:
            connection = self._connection = self._connect()
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        else:
            connection.timeout = seconds
        connection.request(verb, self._prefix + path, body, dict(headers))
        response = connection.getresponse()
        return Answer(response.status, response.headers.get("ETag"), response.read())

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port)


class Pauses:
    """Growing pauses between tries, spread so that a thousand agents do not come back at once."""

    def __init__(self) -> None:
        self._next = _FIRST_PAUSE

    def next(self) -> float:
        pause, self._next = self._next, min(self._next * 2, _LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 — only spreads the tries

    def reset(self) -> None:
        self._next = _FIRST_PAUSE
