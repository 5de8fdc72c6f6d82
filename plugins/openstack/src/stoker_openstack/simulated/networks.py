"""Networks, subnets, ports, the ports of servers, and security groups, whose rules have no effect."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from stoker.model.errors import Invalid
from stoker_openstack.model import CloudKind, CloudObject
from stoker_openstack.simulated import addresses
from stoker_openstack.simulated.project import PART_OF, Kind, Project, part_id
from stoker_openstack.store import cloud_objects

#: Key of a server's representation for its ports by id, and what it lists of each.
PORTS = "stoker:ports"
_PORT_MEMBERS = ("id", "name", "network_id", "mac_address", "fixed_ips", "status", "security_groups")
#: The availability zone of all objects, and the network of servers whose template names none.
ZONE, _DEFAULT_NETWORK = "nova", "private"
_MTU, _SUBNET_OF_POOL, _PREFIX_OF_POOL = 1450, "10.0.0.0/", 24


def _subnet(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members = wanted.specification
    cidr = members.get("cidr") or f"{_SUBNET_OF_POOL}{members.get('prefixlen', _PREFIX_OF_POOL)}"
    parsed = addresses.parse_cidr(cidr)
    network_id = project.resolve(CloudKind.NETWORK, members["network_id"])
    _list_subnet(project, network_id, wanted, wanted.external_id)
    return {
        "gateway_ip": members.get("gateway_ip", addresses.default_gateway(parsed)),
        "allocation_pools": members.get("allocation_pools", [addresses.default_pool(parsed)]),
        "network_id": network_id,
        "cidr": str(parsed),
        "ip_version": parsed.version,
    }


def _delete_subnet(project: Project, gone: CloudObject) -> None:
    _list_subnet(project, gone.observed.get("network_id"), gone)


def _list_subnet(project: Project, network_id: str | None, subnet: CloudObject, *added: str | None) -> None:
    network = project.find(CloudKind.NETWORK, network_id)
    project.replace_entries(network, "subnets", lambda id: id == subnet.external_id, *added)


def _port(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members, before = wanted.specification, wanted.observed
    for id in members.get("stoker:takes_over_from", ()):
        other = cloud_objects.find(project.tx, id)
        if other is not None:
            project.save(other, fixed_ips=[])
    network_id = project.resolve(CloudKind.NETWORK, members["network_id"])
    keeps = "fixed_ips" not in members and before.get("network_id") == network_id
    device = members.get("device_id") or before.get("device_id", "")
    groups = members.get("security_groups", ["default"])
    return {
        "mac_address": members.get("mac_address", addresses.mac(wanted.id)),
        "network_id": network_id,
        "device_id": device,
        "fixed_ips": before["fixed_ips"] if keeps else _fixed_ips(project, network_id, wanted),
        "security_groups": [project.resolve(CloudKind.SECURITY_GROUP, name) for name in groups],
        "status": "ACTIVE" if device else "DOWN",
    }


def _fixed_ips(project: Project, network_id: str, port: CloudObject) -> list[dict[str, str]]:
    """Return the port's addresses: those of the specification, otherwise one of each version of IP."""
    network = project.find(CloudKind.NETWORK, network_id)
    requested: list[Mapping[str, Any]] | None = port.specification.get("fixed_ips")
    if requested == []:
        return []
    if network is None:  # not created by a template: the addresses lead to this machine
        return [
            {
                "subnet_id": project.resolve(CloudKind.SUBNET, entry.get("subnet_id") or f"{network_id}-subnet"),
                "ip_address": entry.get("ip_address") or addresses.loopback(f"{port.id}{number or ''}"),
            }
            for number, entry in enumerate(requested or [{}])
        ]
    stored = [project.find(CloudKind.SUBNET, id) for id in network.observed["subnets"]]
    subnets = [subnet.observed for subnet in stored if subnet is not None]
    if requested is None:
        by_version = {subnet["ip_version"]: subnet for subnet in reversed(subnets)}
        requested = [{"subnet_id": subnet["id"]} for subnet in by_version.values()]
    used: dict[str, set[str]] = {}
    for other in project.of_kind(CloudKind.PORT):
        for fixed_ip in other.observed.get("fixed_ips", ()) if other.id != port.id else ():
            used.setdefault(fixed_ip["subnet_id"], set()).add(fixed_ip["ip_address"])
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


def ensure_port(project: Project, whole: CloudObject, key: str, specification: Mapping[str, Any]) -> CloudObject:
    """Return the stored port of a server or router that exists only for ``whole``; create it if it does not exist."""
    wanted = project.add_part(whole, CloudKind.PORT, key, specification)
    stored = cloud_objects.find(project.tx, wanted.id)
    if stored is not None:
        return stored
    port = replace(wanted, observed=KINDS[CloudKind.PORT].represent(project, wanted))
    cloud_objects.add(project.tx, port)
    return port


def connect(project: Project, server: CloudObject) -> dict[str, Any]:
    """Connect a server to its ports. Returns the members of its representation that depend on the ports."""
    ports = list(_connected(project, server))
    disconnect(project, server, keep={port.id for port in ports})
    return _addresses(project, ports, ())


def disconnect(project: Project, server: CloudObject, keep: Collection[str] = ()) -> None:
    """Delete the former ports that exist only for the server, and disconnect the others."""
    for port in _stored_ports(project, server):
        if port.id in keep:
            continue
        if port.arguments.get(PART_OF) == server.external_id:
            cloud_objects.delete(project.tx, port.id)
        else:
            project.save(port, device_id="", device_owner="", status="DOWN")


def refresh_server(project: Project, port_id: str | None, floating_ips: Sequence[Mapping[str, Any]]) -> None:
    """Update the addresses of the server with this port. ``floating_ips``: the representations of all."""
    port = project.find(CloudKind.PORT, port_id)
    server = project.find(CloudKind.SERVER, port.observed.get("device_id")) if port is not None else None
    if server is not None:
        project.save(server, **_addresses(project, _stored_ports(project, server), floating_ips))


def _connected(project: Project, server: CloudObject) -> Iterator[CloudObject]:
    """Yield the server's ports, each connected to the server. Creates those that exist only for the server."""
    seen: Counter[str] = Counter()
    networks = server.specification.get("networks", "auto")
    if networks == "auto" or not networks:
        networks = [{"uuid": _DEFAULT_NETWORK}]
    for entry in networks if networks != "none" else ():
        if entry.get("port"):
            port = project.require(CloudKind.PORT, entry["port"])
        else:
            text = json.dumps(entry, sort_keys=True)
            seen[text] += 1
            port = ensure_port(project, server, f"port {text} {seen[text]}", _port_body(server, entry))
        yield project.save(port, device_id=server.external_id, device_owner=f"compute:{ZONE}", status="ACTIVE")


def _port_body(server: CloudObject, entry: Mapping[str, Any]) -> dict[str, Any]:
    groups = [group["name"] for group in server.specification.get("security_groups", ())]
    fixed_ip = {"subnet_id": entry.get("subnet"), "ip_address": entry.get("fixed_ip")}
    fixed_ip = {name: value for name, value in fixed_ip.items() if value}
    return {
        "name": "",
        "network_id": entry.get("uuid") or _DEFAULT_NETWORK,
        **({"security_groups": groups} if groups else {}),
        **entry.get("port_extra_properties", {}),
        **({"fixed_ips": [fixed_ip]} if fixed_ip else {}),
    }


def _stored_ports(project: Project, server: CloudObject) -> list[CloudObject]:
    return [port for id in server.observed.get(PORTS, ()) if (port := project.find(CloudKind.PORT, id)) is not None]


def _addresses(
    project: Project, ports: Sequence[CloudObject], floating_ips: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the members of a server's representation that depend on its ports."""
    by_network: dict[str, list[dict[str, Any]]] = {}
    by_port: dict[str, list[str]] = {}
    for item in floating_ips:
        by_port.setdefault(item.get("port_id") or "", []).append(item["floating_ip_address"])
    for port in ports:
        network = project.find(CloudKind.NETWORK, port.specification["network_id"])
        label = network.name if network is not None else port.specification["network_id"]
        pairs = [("fixed", fixed_ip["ip_address"]) for fixed_ip in port.observed["fixed_ips"]]
        pairs += [("floating", address) for address in by_port.get(port.external_id or "", ())]
        by_network.setdefault(label, []).extend(
            {
                "version": 6 if ":" in address else 4,
                "addr": address,
                "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": port.observed["mac_address"],
            }
            for kind, address in pairs
        )
    listed_ports = {port.external_id: {name: port.observed[name] for name in _PORT_MEMBERS} for port in ports}
    return {"addresses": by_network, PORTS: listed_ports}


def _security_group(_project: Project, wanted: CloudObject) -> dict[str, Any]:
    rules = [
        {
            **rule,
            **({"remote_group_id": wanted.external_id} if rule.get("remote_group_id") == "_self" else {}),
            "id": part_id(wanted, f"rule {number}"),
            "security_group_id": wanted.external_id,
        }
        for number, rule in enumerate(wanted.specification.get("stoker:rules", ()))
    ]
    return {"security_group_rules": rules}


def _security_group_rule(project: Project, wanted: CloudObject) -> dict[str, Any]:
    group = wanted.specification["security_group_id"]
    return {"security_group_id": project.resolve(CloudKind.SECURITY_GROUP, group)}


KINDS: Mapping[CloudKind, Kind] = {
    CloudKind.NETWORK: Kind(
        defaults={
            "admin_state_up": True,
            "shared": False,
            "port_security_enabled": True,
            "qos_policy_id": None,
            "tags": [],
        },
        kept={"subnets": []},
        omits=(),
        fixed={"status": "ACTIVE", "mtu": _MTU, "l2_adjacency": True, "segments": [], "router:external": False},
    ),
    CloudKind.SUBNET: Kind(
        defaults={"enable_dhcp": True, "dns_nameservers": [], "host_routes": [], "tags": []},
        omits=("prefixlen",),
        derive=_subnet,
        remove=_delete_subnet,
    ),
    CloudKind.PORT: Kind(
        defaults={
            "admin_state_up": True,
            "allowed_address_pairs": [],
            "port_security_enabled": True,
            "propagate_uplink_status": False,
            "qos_policy_id": None,
            "binding:vnic_type": "normal",
            "tags": [],
        },
        kept={"device_owner": ""},
        omits=(),
        fixed={"dns_assignment": []},
        derive=_port,
    ),
    CloudKind.SECURITY_GROUP: Kind(defaults={"description": "", "stateful": True}, derive=_security_group),
    CloudKind.SECURITY_GROUP_RULE: Kind(omits=(), common=("id", "project_id"), derive=_security_group_rule),
}
