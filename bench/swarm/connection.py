"""One agent's connection: HTTP/1.1 with keep-alive. A client library would use ten times the CPU and memory."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

#: Agents for each local address: fewer than a Stoker with default settings accepts from one address (4096), and fewer
#: than the 28,000 ports that a TCP client has for one address of a server.
_AGENTS_PER_ADDRESS = 4000
#: Limit of the buffer for a response's head, and for the part of its body that was read ahead, in bytes.
_BUFFER = 16 * 1024


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a Stoker. ``tls`` None: without TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None = None

    @classmethod
    def parse(cls, url: str, ca_file: str | None = None) -> Endpoint:
        """Return the endpoint of a URL. Raises ValueError if the URL has no host or another scheme than HTTP(S)."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not the URL of a Stoker, such as https://stoker.example:8004")
        is_tls = parts.scheme == "https"
        tls = ssl.create_default_context(cafile=ca_file) if is_tls else None
        return cls(parts.hostname, parts.port or (443 if is_tls else 80), tls)


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. The names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Connection:
    """
    The connection of the agent number ``index``. It opens at the first request, and again after a failure.

    ``request`` raises OSError, asyncio.IncompleteReadError or ValueError if the connection fails or the response is
    malformed; call ``close`` then.
    """

    def __init__(self, endpoint: Endpoint, key: str, index: int) -> None:
        self._endpoint = endpoint
        self._key = key
        self._local = _local_address(endpoint.host, index)
        self._stream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(
        self, verb: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request, and return the response."""
        if self._stream is None:
            self._stream = await self._open()
        reader, writer = self._stream
        writer.write(self._head(verb, path, len(body), headers or {}) + body)
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        received = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)
        }
        content = await reader.readexactly(int(received.get("content-length") or 0))
        if received.get("connection", "").lower() == "close":
            self.close()
        return Answer(int(lines[0].split()[1]), received, content)

    def close(self) -> None:
        """Close the connection without farewell, as a killed process does."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream[1].transport.abort()
            self._stream = None

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        to = self._endpoint
        return await asyncio.open_connection(to.host, to.port, ssl=to.tls, local_addr=self._local, limit=_BUFFER)

    def _head(self, verb: str, path: str, length: int, headers: Mapping[str, str]) -> bytes:
        fields = {
            "Host": self._endpoint.host,
            "Authorization": f"Bearer {self._key}",
            "Content-Length": str(length),
            "Content-Type": "application/json",
            **headers,
        }
        return (
            f"{verb} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items()) + "\r\n"
        ).encode()


def _local_address(host: str, index: int) -> tuple[str, int] | None:
    """Return the local address of an agent: on loopback, each 4,000 agents have one. Elsewhere, the system decides."""
    if host not in ("127.0.0.1", "localhost"):
        return None
    return f"127.0.0.{1 + index // _AGENTS_PER_ADDRESS % 250}", 0
