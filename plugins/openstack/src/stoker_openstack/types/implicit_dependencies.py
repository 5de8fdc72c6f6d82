"""
Dependencies between resources of a cloud that no function of the template states, as Heat adds them. Pure functions.

A port gets its address from any subnet of its network, and a floating IP needs the router between its network and the
port's. The templates of Heat's users rely on these orders.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from stoker.hot import UNKNOWN, Definition
from stoker.resources.base import Properties, ResourceType
from stoker_openstack.types.cloud_base import CloudType

_NETWORK, _SUBNET, _PORT = "OS::Neutron::Net", "OS::Neutron::Subnet", "OS::Neutron::Port"
_ROUTER, _INTERFACE = "OS::Neutron::Router", "OS::Neutron::RouterInterface"
_FLOATING_IP, _ASSOCIATION = "OS::Neutron::FloatingIP", "OS::Neutron::FloatingIPAssociation"
_GATEWAY, _ROUTES = "OS::Neutron::RouterGateway", "OS::Neutron::ExtraRouteSet"
_FORWARDING, _SERVER = "OS::Neutron::FloatingIPPortForward", "OS::Nova::Server"


class CheckedResource(Protocol):
    """A checked resource of a template. Values that only a running resource knows are UNKNOWN."""

    @property
    def type(self) -> ResourceType: ...
    @property
    def definition(self) -> Definition: ...
    @property
    def properties(self) -> Properties: ...


#: A reference to a resource as ``comparable`` returns it.
Ref = Any


@dataclass(frozen=True, slots=True)
class PlannedResource:
    """
    A resource of a template: its type, and its properties as ``comparable`` returns them.

    The properties have no ``_id`` at the end of their names, as the former names of many do.
    """

    type: str
    properties: Mapping[str, Any]


def comparable(value: Any, source: Any) -> Any:
    """Return a value with each unknown part replaced by the function that ``source`` has there, in JSON."""
    if value is UNKNOWN:
        return None if source is None else json.dumps(source, sort_keys=True, default=str)
    if isinstance(value, Mapping):
        sources = source if isinstance(source, Mapping) else {}
        return {name: comparable(inner, sources.get(name)) for name, inner in value.items()}
    if isinstance(value, list):
        written = source if isinstance(source, list) and len(source) == len(value) else [None] * len(value)
        return list(map(comparable, value, written))
    return value


def _plan(resource: CheckedResource) -> PlannedResource:
    values = comparable(resource.properties, resource.definition.properties).items()
    return PlannedResource(
        resource.type.name, {name.removesuffix("_id"): value for name, value in values if value is not None}
    )


def _subnets_of(resources: Mapping[str, PlannedResource], *networks: Ref | None) -> Iterator[str]:
    """Yield the subnets of networks; None stands for none."""
    for name, resource in resources.items():
        network = resource.properties.get("network") if resource.type == _SUBNET else None
        if network is not None and network in networks:
            yield name


def _of_server(server: PlannedResource, resources: Mapping[str, PlannedResource]) -> Iterator[str]:
    """Yield the subnets of the server's networks; without networks, all networks and subnets of the template."""
    networks = server.properties.get("networks")
    if networks is None:
        yield from (name for name, resource in resources.items() if resource.type in (_NETWORK, _SUBNET))
        return
    entries = [entry for entry in networks if isinstance(entry, Mapping)] if isinstance(networks, list) else []
    yield from _subnets_of(resources, *(entry.get("network") or entry.get("uuid") for entry in entries))


def _of_floating_ip(floating_ip: PlannedResource, resources: Mapping[str, PlannedResource]) -> Iterator[str]:
    """Yield the routers and gateways to the floating IP's network, interfaces, and the subnets of that network."""
    network = floating_ip.properties.get("floating_network")
    if network is None:
        return
    yield from _subnets_of(resources, network)
    for name, resource in resources.items():
        if resource.type == _ROUTER and _gateway_of(resource) == network:
            yield name
        if resource.type == _GATEWAY and resource.properties.get("network") == network:
            yield name
    if floating_ip.properties.get("port") is not None:
        yield from _interfaces(resources)


def _of_gateway(gateway: PlannedResource, resources: Mapping[str, PlannedResource]) -> Iterator[str]:
    """Yield the interfaces of the router, and the subnets of its external network."""
    yield from _interfaces(resources, gateway.properties.get("router"))
    yield from _subnets_of(resources, gateway.properties.get("network"))


def _interfaces(resources: Mapping[str, PlannedResource], router: Ref | None = None) -> Iterator[str]:
    """Yield the interfaces of one router, or of all (None)."""
    for name, resource in resources.items():
        if resource.type == _INTERFACE and router in (None, resource.properties.get("router")):
            yield name


def _gateway_of(router: PlannedResource) -> Ref | None:
    gateway = router.properties.get("external_gateway_info")
    return gateway.get("network") if isinstance(gateway, Mapping) else None


#: By the name of the type.
RULES: Mapping[str, Callable[[PlannedResource, Mapping[str, PlannedResource]], Iterable[str]]] = {
    # The subnets of the port's network: the port may get its address from any of them.
    _PORT: lambda port, resources: _subnets_of(resources, port.properties.get("network")),
    _SERVER: _of_server,
    # The subnets of the router's external network.
    _ROUTER: lambda router, resources: _subnets_of(resources, _gateway_of(router)),
    _FLOATING_IP: _of_floating_ip,
    # All interfaces of routers: one of them leads to the port.
    _ASSOCIATION: lambda _, resources: _interfaces(resources),
    _FORWARDING: lambda _, resources: _interfaces(resources),
    # The interfaces of the router: the next hops are in their subnets.
    _ROUTES: lambda routes, resources: _interfaces(resources, routes.properties.get("router")),
    _GATEWAY: _of_gateway,
}


def imply_dependencies(resources: Mapping[str, CheckedResource]) -> dict[str, set[str]]:
    """Return the implicit dependencies between the resources of a template; see ``Provider.imply_dependencies``."""
    planned = {name: _plan(resource) for name, resource in resources.items() if isinstance(resource.type, CloudType)}
    implied = {
        name: set(RULES[resource.type](resource, planned)) - {name}
        for name, resource in planned.items()
        if resource.type in RULES
    }
    stated = {name: resource.definition.requires for name, resource in resources.items()}
    return without_cycles(stated, implied)


def without_cycles(stated: Mapping[str, frozenset[str]], implied: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return the implied dependencies that do not contradict the template's."""
    needs = {name: set(others) for name, others in stated.items()}
    kept: dict[str, set[str]] = {}
    for name, others in implied.items():
        for other in sorted(others - needs[name]):
            if not _reaches(needs, other, name):
                needs[name].add(other)
                kept.setdefault(name, set()).add(other)
    return kept


def _reaches(needs: Mapping[str, set[str]], start: str, end: str) -> bool:
    todo, seen = [start], {start}
    while todo:
        name = todo.pop()
        if name == end:
            return True
        new = needs.get(name, set()) - seen
        seen |= new
        todo.extend(new)
    return False
