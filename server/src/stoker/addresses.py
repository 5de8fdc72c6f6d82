"""
IP addresses: of clients, their membership in networks and the prefix by which limits count them; and of this machine,
from which the default URL derives at which clients and agents reach Stoker; and URLs as messages show them.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from stoker.model.secrets import REDACTED

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache
def parse_networks(text: str) -> tuple[Network, ...]:
    """
    Parse a comma-separated list of addresses and networks, such as ``10.0.0.0/8, 2001:db8::1``.

    Raises ValueError if an item is neither an address nor a network.
    """
    return tuple(ipaddress.ip_network(word.strip()) for word in text.split(",") if word.strip())


def is_inside(host: str, networks: Iterable[Network]) -> bool:
    """Return whether ``host`` is an address in one of the networks; False if ``host`` is no address."""
    address = _parse(host)
    return address is not None and any(address in network for network in networks)


def client_prefix(host: str) -> str:
    """
    Return the text by which limits identify a client.

    This is the address of an IPv4 client. For an IPv6 client it is the /64 network, because the client may use any
    address of that network. A text that is no address is returned unchanged.
    """
    if ":" not in host:
        return host
    address = _parse(host)
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Address(int(address) >> 64 << 64))
    return str(address or host)


def _parse(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address, without its zone; an IPv4-mapped IPv6 address becomes the IPv4 address."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


_PASSWORD = re.compile(r"(://[^:/@]*):.*@")
#: Addresses reserved for documentation. No packet is sent to them; the routing table only reveals the own address.
_ELSEWHERE = ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1"))
_LOOPBACK = "127.0.0.1"


def derive_url(host: str, port: int, certificate: Path | None) -> str:
    """
    Derive the URL from the listening address.

    If the server listens on all addresses, the URL contains a name from the certificate, or else this machine's
    address.
    """
    if is_wildcard(host):
        host = (certificate and _certified_name(certificate)) or _machine_address()
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if certificate else 'http'}://{shown}:{port}"


def is_wildcard(host: str) -> bool:
    """Whether ``host`` stands for all addresses of the machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host


def is_loopback(host: str) -> bool:
    """Whether ``host`` is reachable from this machine only. Names other than ``localhost`` are not resolved."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def hide_password(url: str) -> str:
    """Return a URL without its password, which may contain any character; a text that is no URL stays as it is."""
    return _PASSWORD.sub(rf"\1:{REDACTED}@", url)


def is_loopback_url(url: str) -> bool:
    """Whether the URL's host is reachable from this machine only."""
    return is_loopback(urlsplit(url).hostname or "")


def has_host(url: str) -> bool:
    """Whether the URL has a host, and a port that is a port."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _certified_name(certificate: Path) -> str | None:
    """The first DNS name in the certificate; None if there is none or the file cannot be read."""
    from cryptography import x509  # imported late, because most settings need no certificate

    try:
        leaf = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        return None
    return next((name for name in names.get_values_for_type(x509.DNSName) if "*" not in name), None)


def _machine_address() -> str:
    """The source address of this machine's packets to other networks."""
    for family, target in _ELSEWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((target, 9))
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return _LOOPBACK
