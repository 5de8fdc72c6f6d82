"""
An HTTP client for webhooks: it connects only to checked addresses and limits the time of a call.

Each connection is made to an address that ``Targets`` has permitted, while the Host header, SNI and the certificate
check use the name. A name that resolves to another address on a second look-up (DNS rebinding) is therefore harmless.
The client follows no redirects, uses no proxy, and reads no further than the head of the response.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
import time
from collections.abc import Mapping
from urllib.parse import SplitResult, unquote, urlsplit

from stoker.messaging.targets import TargetRefused, Targets

#: Headers that belong to the connection or frame the message: users cannot set them.
_OURS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect")
)
_PORTS = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}
#: Maximum bytes of a response's head.
_HEAD = 64 * 1024


class WebhookFailed(Exception):
    """The webhook did not answer; the message gives the reason."""


class WebhookClient:
    """
    ``seconds``: time limit of a call, from the look-up to the response's head. A look-up ends when the machine's
    resolver gives up, also later.
    """

    def __init__(self, targets: Targets, seconds: float, context: ssl.SSLContext) -> None:
        self._targets = targets
        self._seconds = seconds
        self._context = context

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Post ``content``. Returns the response's status. Raises WebhookFailed."""
        until = time.monotonic() + self._seconds
        try:
            target = urlsplit(url)
            with self._connect(target, until) as stream:
                connection = http.client.HTTPConnection(target.hostname or "", target.port or _PORTS[target.scheme])
                connection.default_port = _PORTS[target.scheme]
                connection.sock = stream
                stream.settimeout(_left(until))
                path = f"{target.path or '/'}{f'?{target.query}' if target.query else ''}"
                connection.request("POST", path, content, {**_credentials(target), **_own(headers)})
                return _read_status(stream, until)
        except (TargetRefused, OSError, http.client.HTTPException, ValueError) as error:
            raise WebhookFailed(f"{type(error).__name__}: {error}") from None

    def _connect(self, target: SplitResult, until: float) -> socket.socket:
        host, port = target.hostname or "", target.port or _PORTS[target.scheme]
        problem: OSError = OSError(f"{host} has no address")
        for address in self._targets.resolve(host, port):
            try:
                stream = socket.create_connection((address, port), _left(until))
            except OSError as error:
                problem = error
                continue
            if target.scheme == "http":
                return stream
            try:
                return self._context.wrap_socket(stream, server_hostname=host)
            except (OSError, ValueError):
                stream.close()
                raise
        raise problem


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _OURS and not name.lower().startswith("proxy-")
    }


def _credentials(target: SplitResult) -> dict[str, str]:
    if target.username is None:
        return {}
    text = f"{unquote(target.username)}:{unquote(target.password or '')}"
    return {"Authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the call took too long")
    return left


def _read_status(stream: socket.socket, until: float) -> int:
    """Read the head of the response, but no interim response. Raises OSError, HTTPException or ValueError."""
    head = b""
    while True:
        while b"\r\n\r\n" not in head:
            stream.settimeout(_left(until))
            data = stream.recv(4096)
            if not data or len(head) > _HEAD:
                raise http.client.BadStatusLine(repr(head[:100]))
            head += data
        if not head.startswith(b"HTTP/1."):
            raise http.client.BadStatusLine(repr(head[:100]))
        status = int(head[9:12])
        if status >= 200:
            return status
        head = head.partition(b"\r\n\r\n")[2]
