"""An HTTP client that reuses its connections, because a new one costs as much as a request."""

from __future__ import annotations

import http.client
import select
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urldefrag

#: Far below the server's limit of 60 s, so that the server never closes a connection while a request is sent.
_MAX_IDLE_SECONDS = 20.0


class ConnectionPool:
    """
    Connections to one server. Several threads may use it.

    A connection that the server has closed is not used, so no request is ever sent twice.
    """

    def __init__(self, host: str, port: int, ca_file: Path | None = None, *, is_kept: bool = True) -> None:
        self._address = host, port
        self._tls = ssl.create_default_context(cafile=ca_file) if ca_file else None
        self._is_kept = is_kept
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []

    def request(
        self, verb: str, path: str, body: bytes | None, headers: Mapping[str, str], timeout: float
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Return the status, the headers and the body of the answer. Raises OSError, HTTPException."""
        connection = self._take(timeout)
        try:
            sent = headers if self._is_kept else {**headers, "Connection": "close"}
            connection.request(verb, urldefrag(path).url, body, sent)
            with connection.getresponse() as answer:
                result = answer.status, answer.headers, answer.read()
        except BaseException:
            connection.close()
            raise
        if connection.sock is not None:
            self._idle.append((connection, time.monotonic()))
        return result

    def close(self) -> None:
        """Close the connections that no request uses."""
        while self._idle:
            self._idle.pop()[0].close()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        while True:
            try:
                connection, since = self._idle.pop()
            except IndexError:
                return self._open(timeout)
            if time.monotonic() - since < _MAX_IDLE_SECONDS and not select.select([connection.sock], [], [], 0)[0]:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        if self._tls is not None:
            return http.client.HTTPSConnection(*self._address, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(*self._address, timeout=timeout)
