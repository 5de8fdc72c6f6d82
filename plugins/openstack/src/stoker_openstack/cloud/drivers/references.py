"""
References in a specification: names in place of ids, and indirect references.

An indirect reference names another object in place of the one that Neutron needs, as the types of EC2 do: a key of the
specification (see ``model``) is replaced by an id in the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import NETWORK
from stoker_openstack.cloud.drivers.base import Run, body_of
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.names import NameResolver

SERVER, ADDRESS, EXTERNAL = "stoker:server_id", "stoker:address", "stoker:external_network"

#: The kind of object (``nouns.NOUNS``) that a key of a body names.
_REFERENCES: Mapping[str, str] = {
    "network_id": "network",
    "floating_network_id": "network",
    "subnet_id": "subnet",
    "subnetpool_id": "subnetpool",
    "port_id": "port",
    "router_id": "router",
    "security_groups": "security_group",
    "security_group_id": "security_group",
    "remote_group_id": "security_group",
    "qos_policy_id": "qos_policy",
    "floatingip_id": "floating_ip",
}
#: Keys whose value holds further references.
_NESTED = ("external_gateway_info", "fixed_ips", "external_fixed_ips")


def resolve_references(names: NameResolver, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a body of Neutron with ids in place of names. Raises CloudFailure for names without an object."""
    resolved: dict[str, Any] = {}
    for key, value in body.items():
        kind = _REFERENCES.get(key)
        if kind and isinstance(value, str) and value:
            resolved[key] = names.resolve(kind, value)
        elif kind and isinstance(value, (list, tuple)):
            resolved[key] = [names.resolve(kind, str(item)) for item in value]
        elif key in _NESTED and isinstance(value, Mapping):
            resolved[key] = resolve_references(names, value)
        elif key in _NESTED and isinstance(value, (list, tuple)):
            resolved[key] = [resolve_references(names, item) for item in value]
        else:
            resolved[key] = value
    return resolved


def resolve_body(run: Run) -> dict[str, Any]:
    """Return the body of a request with ids in place of names and of indirect references. Raises CloudFailure."""
    specification, body = run.specification, body_of(run.specification)
    if specification.get(SERVER):
        ports = _list(run, "/ports", "ports", device_id=specification[SERVER])
        body["port_id"] = _first(ports, f"The server {specification[SERVER]} has no port.")["id"]
    if specification.get(ADDRESS):
        matches = _list(run, "/floatingips", "floatingips", floating_ip_address=specification[ADDRESS])
        body["floatingip_id"] = _first(matches, f"The Floatingip ({specification[ADDRESS]}) could not be found.")["id"]
    if specification.get(EXTERNAL) and not body.get("floating_network_id"):
        matches = _list(run, "/networks", "networks", **{"router:external": "true"})
        body["floating_network_id"] = _first(matches, "The cloud has no external network.")["id"]
    return resolve_references(run.names, body)


def _list(run: Run, path: str, key: str, **query: Any) -> list[dict[str, Any]]:
    return run.client.list(NETWORK, path, key, query=query)


def _first(matches: list[dict[str, Any]], problem: str) -> Mapping[str, Any]:
    if not matches:
        raise CloudFailure(problem, "EntityNotFound")
    return matches[0]
