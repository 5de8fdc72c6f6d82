"""Maps attributes of a cloud's servers, ports and floating addresses to those of enrolled servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ADDRESS = "address"
_ADDRESSES = ("first_address", "accessIPv4", "PublicIp", "PrivateIp")
_NAMES = ("instance_name", "PublicDnsName", "PrivateDnsName")
_SHARED = ("name", "os_collect_config", "user_data", "address", "os", "facts")
#: Attributes of groups that do not depend on the type of the members.
_OF_GROUPS = ("refs", "refs_map", "removed_rsrc_list")


def map_of_server(path: Sequence[Any]) -> list[Any] | None:
    """
    Return the attribute of an enrolled server for an attribute of a cloud's server; None if there is none.

    ``path`` begins with the attribute's name; keys and indices follow.
    """
    name = path[0]
    if name in _ADDRESSES:
        return [ADDRESS]
    if name in _NAMES:
        return ["name"]
    if name == "networks" and len(path) > 2:
        return [ADDRESS]
    if name == "addresses" and len(path) > 3 and path[3] == "addr":
        return [ADDRESS]
    if name in ("networks", "addresses") and len(path) == 1:
        return ["networks"]
    return list(path) if name in _SHARED else None


def map_of_group(path: Sequence[Any]) -> list[Any] | None:
    """Return the attribute of a group of enrolled servers for one of a group of a cloud's servers, or None."""
    name = str(path[0])
    if name in _OF_GROUPS:
        return list(path)
    if name in ("attributes", "outputs") and len(path) > 1:
        return _prefixed(["attributes"], map_of_server(path[1:]))
    if name == "outputs_list" and len(path) > 1:
        return map_of_server(path[1:])
    if name.startswith("resource."):
        prefix, attribute = _split_member(name)
        rest = [attribute, *path[1:]] if attribute else list(path[1:])
        return [name] if not rest else _prefixed([prefix], map_of_server(rest))
    return map_of_server(path)


def is_address(path: Sequence[Any]) -> bool:
    """Return whether an attribute of a port or a floating address is an address."""
    if path[0] in ("floating_ip_address", "fixed_ip_address", "ip", "PublicIp", "PrivateIpAddress"):
        return True
    return path[0] == "fixed_ips" and len(path) > 2 and path[2] == "ip_address"


def _split_member(name: str) -> tuple[str, str]:
    """Split ``resource.0.first_address`` into ``resource.0`` and ``first_address``."""
    prefix, member, *attribute = name.split(".", 2)
    return f"{prefix}.{member}", attribute[0] if attribute else ""


def _prefixed(prefix: list[Any], path: list[Any] | None) -> list[Any] | None:
    return None if path is None else [*prefix, *path]
