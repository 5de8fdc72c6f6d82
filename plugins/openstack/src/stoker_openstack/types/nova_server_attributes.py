"""Attributes of OS::Nova::Server, from Nova's representation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Attributes with another name in Nova's representation.
_RENAMED = {"instance_name": "OS-EXT-SRV-ATTR:instance_name", "console_urls": "stoker:consoles"}
_DEFAULTS: Mapping[str, Any] = {"console_urls": {}, "tags": [], "accessIPv4": "", "accessIPv6": ""}


def read(server: Mapping[str, Any], name: str) -> Any:
    """Return the attribute ``name`` of a server in Nova's representation."""
    if name == "addresses":
        return _by_name_and_id(server, list)
    if name == "networks":
        return _by_name_and_id(server, lambda entries: [entry["addr"] for entry in entries])
    if name in ("first_address", "address"):
        return next((entry["addr"] for entries in _entries(server).values() for entry in entries), "")
    return server.get(_RENAMED.get(name, name), _DEFAULTS.get(name))


def _by_name_and_id(server: Mapping[str, Any], convert: Any) -> dict[str, Any]:
    """Return the entries of each network, by its name and by its id, as Heat does."""
    result = {}
    for label, entries in _entries(server).items():
        result[label] = convert(entries)
        for network_id in dict.fromkeys(entry["network"] for entry in entries if entry.get("network")):
            result[network_id] = convert([entry for entry in entries if entry.get("network") == network_id])
    return result


def _entries(server: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """
    Return Nova's addresses, each with the ids of its port, network and subnets.

    Nova lists an address for some time after its port is detached, so addresses without a port are left out.
    """
    ports = list((server.get("stoker:ports") or {}).values())
    result = {}
    for label, entries in (server.get("addresses") or {}).items():
        placed = [{**entry, **_place(entry, ports)} for entry in entries]
        result[label] = [entry for entry in placed if entry["port"] is not None or not ports]
    return {label: entries for label, entries in result.items() if entries}


def _place(entry: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> dict[str, Any]:
    for port in _candidates(entry, ports):
        subnets = [fixed_ip["subnet_id"] for fixed_ip in port.get("fixed_ips") or ()]
        return {"port": port["id"], "network": port["network_id"], "subnets": subnets}
    return {"port": None, "network": None, "subnets": []}


def _candidates(entry: Mapping[str, Any], ports: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the ports of an address, first by the address itself and then by MAC, which several ports may share."""
    for port in ports:
        if any(fixed_ip["ip_address"] == entry["addr"] for fixed_ip in port.get("fixed_ips") or ()):
            yield port
    for port in ports:
        if port.get("mac_address") == entry.get("OS-EXT-IPS-MAC:mac_addr"):
            yield port
