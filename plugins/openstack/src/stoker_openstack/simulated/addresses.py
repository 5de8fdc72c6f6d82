"""Addresses of the cloud of one machine. Pure functions."""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from stoker.model.errors import Invalid

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def loopback(id: str) -> str:
    """
    Return the loopback address of a port or floating IP: 127.1.0.1 to 127.254.255.254, derived from the id.

    On Linux, all addresses in 127.0.0.0/8 lead to this machine.
    """
    digest = hashlib.sha256(id.encode()).digest()
    return f"127.{1 + digest[0] % 254}.{digest[1]}.{1 + digest[2] % 254}"


def mac(id: str) -> str:
    """Return the MAC address of a port, with Neutron's prefix."""
    return "fa:16:3e:" + ":".join(f"{byte:02x}" for byte in hashlib.sha256(id.encode()).digest()[:3])


def parse_cidr(cidr: str) -> _Network:
    """Return the network. Raises Invalid."""
    try:
        return ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise Invalid(f"cidr {cidr}: {error}") from None


def default_gateway(network: _Network) -> str:
    """Return the first address after the network's own."""
    return str(network[min(1, network.num_addresses - 1)])


def default_pool(network: _Network) -> dict[str, str]:
    """Return the range of addresses for ports: all except the network's own, the gateway's and the broadcast's."""
    first = min(2, network.num_addresses - 1)
    last = -2 if network.version == 4 and network.num_addresses > 3 else -1
    return {"start": str(network[first]), "end": str(network[last])}


def choose(subnet: Mapping[str, Any], used: Collection[str]) -> str:
    """Return the first free address of a subnet. Raises Invalid if none is free."""
    for pool in subnet["allocation_pools"]:
        for address in _range(pool):
            if address not in used and address != subnet["gateway_ip"]:
                return address
    raise Invalid(f"No more IP addresses available on subnet {subnet['name'] or subnet['id']} ({subnet['cidr']}).")


def check(subnet: Mapping[str, Any], address: str, used: Collection[str]) -> str:
    """Return the requested address. Raises Invalid if it is not free or not in the subnet."""
    parsed = _parse(address)
    if parsed not in parse_cidr(subnet["cidr"]):
        raise Invalid(f"IP address {address} is not a valid IP for the specified subnet {subnet['cidr']}.")
    if str(parsed) in used:
        raise Invalid(f"IP address {address} already allocated in subnet {subnet['id']}.")
    return str(parsed)


def _range(pool: Mapping[str, str]) -> Iterator[str]:
    first, last = _parse(pool["start"]), _parse(pool["end"])
    kind = type(first)
    return (str(kind(number)) for number in range(int(first), int(last) + 1))


def _parse(address: str) -> _Address:
    try:
        return ipaddress.ip_address(address)
    except ValueError:
        raise Invalid(f"{address} is not an IP address") from None
