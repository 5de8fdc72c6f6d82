"""Networks, subnets and ports of the cloud of one machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import Invalid
from stoker.servers.local_cloud import addresses
from stoker.servers.local_cloud.project import PlainHandler, Project
from stoker.store import cloud_objects

#: The network of servers whose template names none.
DEFAULT_NETWORK = "private"
_MTU, _SUBNET_OF_POOL = 1450, "10.0.0.0/"
_PREFIX_OF_POOL = 24


class Networks(PlainHandler):
    """Networks that templates create."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = _plain(wanted.specification)
        return {
            "admin_state_up": True,
            "shared": False,
            "port_security_enabled": True,
            "qos_policy_id": None,
            **members,
            "id": wanted.external_id,
            "name": wanted.name,
            "status": "ACTIVE",
            "mtu": _MTU,
            "l2_adjacency": True,
            "segments": [],
            "router:external": False,
            "subnets": wanted.observed.get("subnets", []),
            "tags": wanted.specification.get("tags", []),
            **_owner(project),
        }


class Subnets(PlainHandler):
    """Subnets, whose networks list them."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = _plain(wanted.specification)
        prefix = members.pop("prefixlen", _PREFIX_OF_POOL)
        network = addresses.parse_cidr(members.get("cidr") or f"{_SUBNET_OF_POOL}{prefix}")
        network_id = project.resolve(CloudKind.NETWORK, members["network_id"])
        _list_subnet(project, network_id, wanted.external_id)
        return {
            "enable_dhcp": True,
            "dns_nameservers": [],
            "host_routes": [],
            "gateway_ip": addresses.default_gateway(network),
            "allocation_pools": [addresses.default_pool(network)],
            **members,
            "id": wanted.external_id,
            "name": wanted.name,
            "network_id": network_id,
            "cidr": str(network),
            "ip_version": network.version,
            "tags": wanted.specification.get("tags", []),
            **_owner(project),
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        _list_subnet(project, gone.observed.get("network_id", ""), gone.external_id, add=False)


class Ports(PlainHandler):
    """Ports of templates, of servers and of routers."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = _plain(wanted.specification)
        for id in wanted.specification.get("stoker:takes_over_from", ()):
            other = cloud_objects.find(project.tx, id)
            if other is not None:
                project.save(other, fixed_ips=[])
        network_id = project.resolve(CloudKind.NETWORK, members["network_id"])
        before = wanted.observed
        keeps = "fixed_ips" not in members and before.get("network_id") == network_id
        device = members.pop("device_id", None) or before.get("device_id", "")
        groups = [
            project.resolve(CloudKind.SECURITY_GROUP, name) for name in members.pop("security_groups", ["default"])
        ]
        return {
            "admin_state_up": True,
            "allowed_address_pairs": [],
            "port_security_enabled": True,
            "propagate_uplink_status": False,
            "qos_policy_id": None,
            "mac_address": addresses.mac(wanted.id),
            "binding:vnic_type": "normal",
            "device_owner": before.get("device_owner", ""),
            **members,
            "id": wanted.external_id,
            "name": wanted.name,
            "network_id": network_id,
            "device_id": device,
            "fixed_ips": before["fixed_ips"] if keeps else _fixed_ips(project, network_id, wanted),
            "security_groups": groups,
            "dns_assignment": [],
            "status": "ACTIVE" if device else "DOWN",
            "tags": wanted.specification.get("tags", []),
            **_owner(project),
        }


def ensure_part(project: Project, whole: CloudObject, key: str, specification: Mapping[str, Any]) -> CloudObject:
    """Return the stored port of a server or router that exists only for ``whole``; create it if it does not exist."""
    wanted = project.add_part(whole, CloudKind.PORT, key, specification)
    stored = cloud_objects.find(project.tx, wanted.id)
    if stored is not None:
        return stored
    port = replace(wanted, observed=Ports().ensure(project, wanted))
    cloud_objects.add(project.tx, port)
    return port


def name_of(project: Project, network: str) -> str:
    """Return the name of the network with this name or id."""
    stored = project.find(CloudKind.NETWORK, network)
    return stored.name if stored is not None else network


def _fixed_ips(project: Project, network_id: str, port: CloudObject) -> list[dict[str, str]]:
    """Return the port's addresses: those of the specification, otherwise one of each version of IP."""
    network = project.find(CloudKind.NETWORK, network_id)
    requested: list[Mapping[str, Any]] | None = port.specification.get("fixed_ips")
    if requested == []:
        return []
    if network is None:  # not created by a template: the addresses lead to this machine
        entries = requested or [{}]
        return [
            {
                "subnet_id": project.resolve(CloudKind.SUBNET, entry.get("subnet_id") or f"{network_id}-subnet"),
                "ip_address": entry.get("ip_address") or addresses.loopback(f"{port.id}{number or ''}"),
            }
            for number, entry in enumerate(entries)
        ]
    subnets = [subnet.observed for id in network.observed["subnets"] if (subnet := _subnet(project, id)) is not None]
    if requested is None:
        by_version = {subnet["ip_version"]: subnet for subnet in reversed(subnets)}
        requested = [{"subnet_id": subnet["id"]} for subnet in by_version.values()]
    used = _used(project, port.id)
    return [_assign(project, entry, subnets, used) for entry in requested]


def _assign(
    project: Project, entry: Mapping[str, Any], subnets: list[Mapping[str, Any]], used: dict[str, set[str]]
) -> dict[str, str]:
    """Return one address. ``used`` has the addresses in use by subnet, and gets this one."""
    subnet = _choose_subnet(project, entry, subnets)
    taken = used.setdefault(subnet["id"], set())
    address = entry.get("ip_address")
    chosen = addresses.check(subnet, address, taken) if address else addresses.choose(subnet, taken)
    taken.add(chosen)
    return {"subnet_id": subnet["id"], "ip_address": chosen}


def _choose_subnet(project: Project, entry: Mapping[str, Any], subnets: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    if entry.get("subnet_id"):
        id = project.resolve(CloudKind.SUBNET, entry["subnet_id"])
        named = [subnet for subnet in subnets if subnet["id"] == id]
        if not named:
            raise Invalid(f"Subnet {entry['subnet_id']} could not be found in the port's network.")
        return named[0]
    address = entry.get("ip_address", "")
    for subnet in subnets:
        try:
            addresses.check(subnet, address, ())
        except Invalid:
            continue
        return subnet
    raise Invalid(f"IP address {address} is not a valid IP for any of the subnets on the port's network.")


def _used(project: Project, port_id: str) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {}
    for port in cloud_objects.of_kind(project.tx, project.id, CloudKind.PORT):
        for fixed_ip in port.observed.get("fixed_ips", ()) if port.id != port_id else ():
            used.setdefault(fixed_ip["subnet_id"], set()).add(fixed_ip["ip_address"])
    return used


def _subnet(project: Project, id: str) -> CloudObject | None:
    return project.find(CloudKind.SUBNET, id)


def _list_subnet(project: Project, network_id: str, subnet_id: str | None, *, add: bool = True) -> None:
    network = project.find(CloudKind.NETWORK, network_id)
    if network is not None:
        others = [id for id in network.observed.get("subnets", ()) if id != subnet_id]
        project.save(network, subnets=[*others, subnet_id] if add else others)


def _plain(specification: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in specification.items() if not name.startswith("stoker:")}


def _owner(project: Project) -> dict[str, str]:
    return {"tenant_id": project.id, "project_id": project.id}
