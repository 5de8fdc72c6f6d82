"""Finds the calls of HOT functions, and maps references to the parts and attributes that a migration replaces."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stoker_migrate.template.parts import NewParameter
from stoker_migrate.template.source_text import Path, mapping_at


def calls(value: Any, names: tuple[str, ...], path: Path = ()) -> Iterator[tuple[Path, str, Any]]:
    """Yield path, function and argument of every call of the functions ``names`` in ``value``."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in names:
            yield path, *next(iter(value.items()))
        for key, inner in value.items():
            yield from calls(inner, names, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from calls(inner, names, (*path, index))


def list_resources(value: Any) -> list[str]:
    """Return the names of the resources that ``value`` refers to, in the order of the calls."""
    names = []
    for _, function, argument in calls(value, ("get_resource", "get_attr")):
        name = (
            argument if function == "get_resource" else argument[0] if isinstance(argument, list) and argument else ""
        )
        if isinstance(name, str):
            names.append(name)
    return names


def list_parameters(value: Any) -> set[str]:
    """Return the names of the parameters that ``value`` refers to."""
    arguments = [argument for _, _, argument in calls(value, ("get_param",))]
    names = {argument[0] if isinstance(argument, list) and argument else argument for argument in arguments}
    return {name for name in names if isinstance(name, str)}


def substitute(value: Any, replacements: dict[Path, Any], path: Path = ()) -> Any:
    """Return a copy of ``value`` with the parts at some paths replaced."""
    if path in replacements:
        return replacements[path]
    if isinstance(value, dict):
        return {key: substitute(inner, replacements, (*path, key)) for key, inner in value.items()}
    if isinstance(value, list):
        return [substitute(inner, replacements, (*path, index)) for index, inner in enumerate(value)]
    return value


#: Properties with which servers, ports, floating addresses and their associations refer to one another.
_LINKING = ("networks", "port", "port_id", "floatingip_id", "floating_ip", "server", "server_id", "InstanceId", "EIP")


@dataclass
class References:
    """The references of one template. ``add_parameter`` adds a parameter, and returns its name."""

    #: Whether each resource that becomes an enrolled server is a group of servers.
    servers: Mapping[str, bool]
    dropped: Mapping[str, Any]
    add_parameter: Callable[[NewParameter], str]
    #: The server whose address a dropped port or floating address has.
    _owners: dict[str, str] = field(default_factory=dict)

    def link(self, resources: Mapping[str, Any]) -> None:
        """Find the servers that dropped ports and floating addresses belong to."""
        neighbors = {name: _linked(definition) for name, definition in resources.items() if name in self.dropped}
        for server in self.servers:
            reached = [name for name in _linked(resources[server]) if name in self.dropped]
            reached += [name for name, names in neighbors.items() if server in names]
            while reached:
                name = reached.pop()
                if self._owners.setdefault(name, server) == server and name in neighbors:
                    others = [*neighbors.pop(name), *(other for other, names in neighbors.items() if name in names)]
                    reached += [other for other in others if other in self.dropped]

    def replacements(self, value: Any, *, is_optional: bool = False) -> dict[Path, Any]:
        """Return the new values of all calls in ``value`` that refer to replaced or dropped resources."""
        new: dict[Path, Any] = {}
        for path, function, argument in calls(value, ("get_resource", "get_attr")):
            if any(path[: len(outer)] == outer for outer in new):
                continue  # an argument of a call that is replaced
            mapped = self._map(function, argument, is_optional)
            if mapped is not None and mapped != {function: argument}:
                new[path] = mapped
        return new

    def rewrite(self, value: Any) -> Any:
        """Return a copy of ``value`` with all references mapped."""
        return substitute(value, self.replacements(value))

    def unmapped(self, value: Any) -> list[str]:
        """Return descriptions of the references in ``value`` that only a parameter can replace."""
        descriptions: list[str] = []

        def note(new: NewParameter) -> str:
            descriptions.append(new.description)
            return ""

        References(self.servers, self.dropped, note, self._owners).replacements(value)
        return descriptions

    def _map(self, function: str, argument: Any, is_optional: bool) -> Any:
        if function == "get_resource":
            return self._parameter([argument], is_optional) if _is_name(argument, self.dropped) else None
        if not isinstance(argument, list) or len(argument) < 2:
            return None
        name, path = argument[0], argument[1:]
        if _is_name(name, self.servers):
            return self._map_attribute(name, path, is_optional)
        if not _is_name(name, self.dropped):
            return None
        owner = self._owners.get(name)
        if owner is not None and not self.servers[owner] and is_address(path):
            return {"get_attr": [owner, ADDRESS]}
        return self._parameter(argument, is_optional)

    def _map_attribute(self, name: str, path: list[Any], is_optional: bool) -> Any:
        is_group = self.servers[name]
        if not is_group and path[0] == "networks" and len(path) == 2:
            return [{"get_attr": [name, ADDRESS]}]
        mapped = (map_of_group if is_group else map_of_server)(path)
        return self._parameter([name, *path], is_optional) if mapped is None else {"get_attr": [name, *mapped]}

    def _parameter(self, argument: list[Any], is_optional: bool) -> dict[str, str]:
        words = [str(word) for word in argument if isinstance(word, str | int)]
        name = re.sub(r"\W+", "_", "_".join(words)).strip("_")
        if len(words) > 1:
            description = f"The attribute {'.'.join(words[1:])} of the former resource {words[0]}."
        else:
            description = f"The id of the former resource {words[0]}."
        return {"get_param": self.add_parameter(NewParameter(name, description, is_optional=is_optional))}


def _linked(definition: Mapping[str, Any]) -> list[str]:
    properties = mapping_at(definition, "properties")
    return list_resources([value for name, value in properties.items() if name in _LINKING])


def _is_name(value: Any, names: Collection[str]) -> bool:
    return isinstance(value, str) and value in names


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
