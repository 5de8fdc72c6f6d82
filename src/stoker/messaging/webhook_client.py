"""
An HTTP client for webhooks: it connects only to checked addresses and limits the total time of a call.

Each connection is made to an address that ``Targets`` has permitted, while the Host header, SNI and the certificate
check use the name. A name that resolves to another address on a second look-up (DNS rebinding) is therefore harmless.
The client follows no redirects and uses no proxy from the environment, because a proxy would connect to any address.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Mapping
from typing import Any

import httpcore2
import httpx2

from stoker.messaging.targets import TargetRefused, Targets

#: Headers that belong to the connection or frame the message: users cannot set them.
_OURS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect")
)


class WebhookFailed(Exception):
    """The webhook did not answer; the message gives the reason."""


class WebhookClient:
    """An HTTP client for one thread. ``seconds``: time limit of a call, from the look-up to the response's head."""

    def __init__(self, targets: Targets, seconds: float, context: ssl.SSLContext) -> None:
        self._network = _CheckedNetwork(targets)
        self._seconds = seconds
        pool = httpcore2.ConnectionPool(ssl_context=context, network_backend=self._network)
        self._client = httpx2.Client(transport=_PoolTransport(pool), trust_env=False, timeout=seconds)

    def post(self, url: str, content: bytes, headers: Mapping[str, str]) -> int:
        """Post ``content``. Returns the response's status. Raises WebhookFailed."""
        self._network.until = time.monotonic() + self._seconds
        try:
            with self._client.stream("POST", url, content=content, headers=_own(headers)) as answer:
                return answer.status_code
        except TargetRefused as error:
            raise WebhookFailed(str(error)) from None
        except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpcore2.NetworkError) as error:
            raise WebhookFailed(f"{type(error).__name__}: {error}") from None
        except (httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
            raise WebhookFailed(f"{type(error).__name__}: {error}") from None

    def close(self) -> None:
        """Close all connections."""
        self._client.close()


def client_context() -> ssl.SSLContext:
    """The TLS context for webhooks. Its creation takes time, so all clients share one."""
    return httpx2.create_ssl_context()


def _own(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in headers.items()
        if name.lower() not in _OURS and not name.lower().startswith("proxy-")
    }


class _PoolTransport(httpx2.BaseTransport):
    """Like httpx2's transport, but with a pool that uses the checked network."""

    def __init__(self, pool: httpcore2.ConnectionPool) -> None:
        self._pool = pool

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.SyncByteStream)
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        answer = self._pool.handle_request(
            httpcore2.Request(
                method=request.method,
                url=url,
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(status_code=answer.status, headers=answer.headers, stream=_Body(answer))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx2.SyncByteStream):
    """A response body that is never read."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    def close(self) -> None:
        self._answer.close()


class _CheckedNetwork(httpcore2.NetworkBackend):
    """
    A network that connects only to permitted addresses. ``until``: end of the current call on the monotonic clock.
    """

    def __init__(self, targets: Targets) -> None:
        self._targets = targets
        self._sockets = httpcore2.SyncBackend()
        self.until = 0.0

    @property
    def left(self) -> float:
        """Remaining seconds of the call. Raises ReadTimeout if there are none."""
        left = self.until - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the call took too long")
        return left

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        problem: Exception = httpcore2.ConnectError(f"{host} has no address")
        for address in self._targets.resolve(host, port, self.left):
            try:
                stream = self._sockets.connect_tcp(address, port, self.left, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                problem = error
            else:
                return _BoundedStream(stream, self)
        raise problem


class _BoundedStream(httpcore2.NetworkStream):
    """A connection that limits each operation to the remaining time of the call."""

    def __init__(self, stream: httpcore2.NetworkStream, network: _CheckedNetwork) -> None:
        self._stream = stream
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._network.left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._network.left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        return _BoundedStream(self._stream.start_tls(ssl_context, server_hostname, self._network.left), self._network)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
