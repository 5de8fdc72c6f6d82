"""
An HTTP client for webhooks: it connects only to permitted addresses and limits the time of a call.

Public addresses are permitted, and the networks in the site's settings. Each connection is made to an address that
``Targets`` has permitted, while the Host header, SNI and the certificate check use the name. A name that resolves to
another address on a second look-up (DNS rebinding) is therefore harmless. The client follows no redirects, uses no
proxy, and reads no further than the head of the response.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from urllib.parse import SplitResult, unquote, urlsplit

from stoker.addresses import Network, parse_networks
from stoker.model.errors import Invalid

_Address = IPv4Address | IPv6Address
#: Prefixes of IPv6 addresses that contain an IPv4 address: in the last 32 bits, and in bits 16 to 48.
_NAT64, _SIX_TO_FOUR = IPv6Network("64:ff9b::/96"), IPv6Network("2002::/16")
_NUMBERS = re.compile(r"[0-9a-fA-FxX.]+")


class TargetRefused(Exception):
    """The target is not permitted or cannot be resolved; the message gives the reason."""


@dataclass(frozen=True, slots=True)
class Targets:
    """The permitted targets. ``allowed``: networks in addition to the public ones."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def of(cls, networks: str) -> Targets:
        """Parse comma-separated networks, such as ``10.1.0.0/16, fd00::/8``. Raises Invalid."""
        try:
            return cls(parse_networks(networks))
        except ValueError as error:
            raise Invalid(f"webhook_networks must be networks in CIDR notation, separated by commas: {error}") from None

    def check_literal(self, host: str) -> None:
        """Raises Invalid if ``host`` is a forbidden address in any notation. Makes no look-up."""
        bare = host.strip("[]").rstrip(".").lower()
        address = _literal(bare)
        local = bare == "localhost" or bare.endswith(".localhost")
        if local and not self.allows(IPv4Address("127.0.0.1")) and not self.allows(IPv6Address("::1")):
            raise Invalid(_refusal(host))
        if address is not None and not self.allows(address):
            raise Invalid(_refusal(host))

    def check(self, host: str) -> None:
        """
        Raises Invalid if ``host`` is a forbidden address or a name of one. May wait for a DNS server.

        A name that cannot be resolved passes, because every delivery resolves the name again.
        """
        self.check_literal(host)
        try:
            addresses = _look_up(host, 0)
        except TargetRefused:
            return
        if not all(self.allows(address) for address in addresses):
            raise Invalid(_refusal(host))

    def resolve(self, host: str, port: int) -> Sequence[str]:
        """The permitted addresses of a host. Raises TargetRefused if there is none."""
        addresses = [address for address in _look_up(host, port) if self.allows(address)]
        if not addresses:
            raise TargetRefused(_refusal(host))
        return [str(address) for address in addresses]

    def allows(self, address: _Address) -> bool:
        """
        Whether an address is permitted. An IPv6 address that contains an IPv4 address is treated as the IPv4 address.
        """
        plain = _plain(address)
        if any(plain in network for network in self.allowed if network.version == plain.version):
            return True
        site_local = isinstance(plain, IPv6Address) and plain.is_site_local
        return plain.is_global and not (plain.is_multicast or plain.is_reserved or site_local)


def _refusal(host: str) -> str:
    return (
        f"a webhook cannot go to {host!r:.300}: it is not a public address, and the site's setting webhook_networks "
        "does not name it"
    )


def _plain(address: _Address) -> _Address:
    if not isinstance(address, IPv6Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    if address in _SIX_TO_FOUR:
        return IPv4Address(int(address) >> 80 & 0xFFFFFFFF)
    return address


def _literal(host: str) -> _Address | None:
    """Parse an address, also in the forms that C libraries accept: ``2130706433``, ``0x7f.1``. None for a name."""
    try:
        return ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    try:
        return IPv4Address(socket.inet_aton(host)) if _NUMBERS.fullmatch(host) else None
    except OSError:
        return None


def _look_up(host: str, port: int) -> list[_Address]:
    """Resolve a host. Raises TargetRefused."""
    try:
        answer = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in answer]
    except (OSError, UnicodeError, ValueError) as error:
        raise TargetRefused(f"cannot look up {host!r:.300}: {error}") from None


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
