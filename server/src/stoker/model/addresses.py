"""IP addresses of clients: membership in networks, and the prefix by which limits count a client."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from functools import lru_cache

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
