"""Networks, ports, routers, floating IPs and security groups, through which no traffic flows."""

from __future__ import annotations

import hashlib
import ipaddress
import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.errors import Invalid
from stoker_openstack.model import PORT_MEMBERS, PORTS, CloudKind, CloudObject
from stoker_openstack.simulated.project import PART_OF, Kind, Project, part_id
from stoker_openstack.store import cloud_objects

#: The availability zone of all objects, and the network of servers whose template names none.
ZONE, _DEFAULT_NETWORK, _EXTERNAL_NETWORK = "nova", "private", "public"
_MTU, _SUBNET_OF_POOL, _PREFIX_OF_POOL = 1450, "10.0.0.0/", 24
_GATEWAY = "external_gateway_info"


def loopback(id: str) -> str:
    """
    Return the loopback address of a port or floating IP: 127.1.0.1 to 127.254.255.254, derived from the id.

    On Linux, all addresses in 127.0.0.0/8 lead to this machine.
    """
    digest = hashlib.sha256(id.encode()).digest()
    return f"127.{1 + digest[0] % 254}.{digest[1]}.{1 + digest[2] % 254}"


def _subnets(project: Project, network: CloudObject) -> dict[str, Any]:
    subnets = _of(project, CloudKind.SUBNET, network_id=network.external_id)
    return {"subnets": [subnet.external_id for subnet in subnets]}


def _subnet(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members = wanted.specification
    cidr = members.get("cidr") or f"{_SUBNET_OF_POOL}{members.get('prefixlen', _PREFIX_OF_POOL)}"
    try:
        network = ipaddress.ip_network(cidr, strict=False)
    except ValueError as error:
        raise Invalid(f"cidr {cidr}: {error}") from None
    last = network.num_addresses - 1
    # The last address of IPv4 is for broadcasts.
    pool = {"start": str(network[min(2, last)]), "end": str(network[last - (network.version == 4 and last > 2)])}
    return {
        "gateway_ip": members.get("gateway_ip", str(network[min(1, last)])),
        "allocation_pools": members.get("allocation_pools", [pool]),
        "network_id": project.resolve(CloudKind.NETWORK, members["network_id"]),
        "cidr": str(network),
        "ip_version": network.version,
    }


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
    digest = hashlib.sha256(wanted.id.encode()).digest()
    return {
        "mac_address": members.get("mac_address", "fa:16:3e:" + digest[:3].hex(":")),
        "network_id": network_id,
        "device_id": device,
        "device_owner": members.get("device_owner") or before.get("device_owner", ""),
        "fixed_ips": before["fixed_ips"] if keeps else list(_fixed_ips(project, network_id, wanted)),
        "security_groups": [project.resolve(CloudKind.SECURITY_GROUP, name) for name in groups],
        "status": "ACTIVE" if device else "DOWN",
    }


def _fixed_ips(project: Project, network_id: str, port: CloudObject) -> Iterator[dict[str, str]]:
    """Yield the addresses that the specification names, otherwise a free one of each version of IP."""
    subnets = [subnet.observed for subnet in _of(project, CloudKind.SUBNET, network_id=network_id)]
    # In a network without subnets, such as one that no template creates, addresses lead to this machine.
    subnets = subnets or [{"id": project.resolve(CloudKind.SUBNET, f"{network_id}-subnet"), "ip_version": 4}]
    by_version = {subnet["ip_version"]: subnet for subnet in reversed(subnets)}
    used = {
        (entry["subnet_id"], entry["ip_address"])
        for other in project.of_kind(CloudKind.PORT)
        for entry in (other.observed.get("fixed_ips", ()) if other.id != port.id else ())
    }
    requested = port.specification.get("fixed_ips")
    for entry in [{"subnet_id": subnet["id"]} for subnet in by_version.values()] if requested is None else requested:
        ref, address = entry.get("subnet_id"), entry.get("ip_address")
        subnet_id = project.resolve(CloudKind.SUBNET, ref) if ref else _subnet_with(subnets, address)
        subnet = next((item for item in subnets if item["id"] == subnet_id), {"id": subnet_id})
        pair = (subnet_id, address or _free_address(subnet, used, f"{port.id}{len(used)}"))
        if pair in used:
            raise Invalid(f"IP address {address} already allocated in subnet {subnet_id}.")
        used.add(pair)
        yield {"subnet_id": pair[0], "ip_address": pair[1]}


def _subnet_with(subnets: list[Mapping[str, Any]], address: str | None) -> str:
    """Return the id of the subnet that contains an address, otherwise of the first one."""
    containing = (
        subnet["id"]
        for subnet in subnets
        if address and "cidr" in subnet and ipaddress.ip_address(address) in ipaddress.ip_network(subnet["cidr"])
    )
    return str(next(containing, subnets[0]["id"]))


def _free_address(subnet: Mapping[str, Any], used: Collection[tuple[str, str]], seed: str) -> str:
    for pool in subnet.get("allocation_pools", ()):
        address, end = ipaddress.ip_address(pool["start"]), ipaddress.ip_address(pool["end"])
        while int(address) <= int(end):
            if (subnet["id"], str(address)) not in used and str(address) != subnet["gateway_ip"]:
                return str(address)
            address += 1
    return loopback(seed)


def ensure_port(project: Project, whole: CloudObject, key: str, specification: Mapping[str, Any]) -> CloudObject:
    """Return the stored port of a server or router that exists only for ``whole``; create it if it does not exist."""
    id = part_id(whole, key)
    stored = cloud_objects.find(project.tx, id)
    if stored is not None:
        return stored
    port = replace(
        whole,
        id=id,
        kind=CloudKind.PORT,
        name="",
        specification=specification,
        arguments={PART_OF: whole.external_id},
        external_id=id,
        observed={},
    )
    port = replace(port, observed=KINDS[CloudKind.PORT].represent(project, port))
    cloud_objects.add(project.tx, port)
    return port


def connect(project: Project, server: CloudObject) -> list[str]:
    """Connect a server to its ports, and return their ids."""
    ports = list(_connected(project, server))
    disconnect(project, server, keep={port.id for port in ports})
    return [str(port.external_id) for port in ports]


def disconnect(project: Project, server: CloudObject, keep: Collection[str] = ()) -> None:
    """Delete the former ports that exist only for the server, and disconnect the others."""
    for port in _ports_of(project, server):
        if port.id in keep:
            continue
        if port.arguments.get(PART_OF) == server.external_id:
            cloud_objects.delete(project.tx, port.id)
        else:
            project.save(port, device_id="", device_owner="", status="DOWN")


def addresses(project: Project, server: CloudObject) -> dict[str, Any]:
    """Return the members of a server's representation that depend on its ports and their floating IPs."""
    by_network: dict[str, list[dict[str, Any]]] = {}
    ports = _ports_of(project, server)
    floating_ips = [(_target(project, item), item) for item in project.of_kind(CloudKind.FLOATING_IP)]
    for port in ports:
        network = project.find(CloudKind.NETWORK, port.specification["network_id"])
        label = network.name if network is not None else port.specification["network_id"]
        pairs = [("fixed", entry["ip_address"]) for entry in port.observed["fixed_ips"]]
        pairs += [
            ("floating", item.observed["floating_ip_address"])
            for target, item in floating_ips
            if target["port_id"] == port.external_id
        ]
        by_network.setdefault(label, []).extend(
            {
                "version": 6 if ":" in address else 4,
                "addr": address,
                "OS-EXT-IPS:type": kind,
                "OS-EXT-IPS-MAC:mac_addr": port.observed["mac_address"],
            }
            for kind, address in pairs
        )
    listed = {port.external_id: {name: port.observed[name] for name in PORT_MEMBERS} for port in ports}
    return {"addresses": by_network, PORTS: listed}


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


def _ports_of(project: Project, server: CloudObject) -> list[CloudObject]:
    return [port for id in server.observed.get(PORTS, ()) if (port := project.find(CloudKind.PORT, id)) is not None]


def _router(project: Project, wanted: CloudObject) -> dict[str, Any]:
    gateway = wanted.specification.get(_GATEWAY)
    return {_GATEWAY: _gateway(project, wanted.id, gateway) if gateway else None}


def _routes(project: Project, router: CloudObject) -> dict[str, Any]:
    """Return what resources of their own set: the gateway and the routes."""
    gateways = _of(project, CloudKind.ROUTER_GATEWAY, router_id=router.external_id)
    sets = _of(project, CloudKind.EXTRA_ROUTE_SET, id=router.external_id)
    return {
        _GATEWAY: next((item.observed[_GATEWAY] for item in gateways), router.observed[_GATEWAY]),
        "routes": [route for item in sets for route in item.observed["routes"]],
    }


def _gateway(project: Project, router_id: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the representation of a router's gateway, with its address in the external network."""
    network_id = project.resolve(CloudKind.NETWORK, wanted["network_id"])
    fixed_ips = wanted.get("external_fixed_ips") or [{"ip_address": loopback(router_id)}]
    return {"enable_snat": True, **wanted, "network_id": network_id, "external_fixed_ips": fixed_ips}


def _router_id(project: Project, wanted: CloudObject) -> str:
    return project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])


def _set_gateway(project: Project, wanted: CloudObject) -> dict[str, Any]:
    router_id = _router_id(project, wanted)
    gateway = _gateway(project, router_id, {"network_id": wanted.specification["network_id"]})
    return {"router_id": router_id, _GATEWAY: gateway, **gateway}


def _interface(project: Project, wanted: CloudObject) -> dict[str, Any]:
    """Return the interface, with a port that has the address of the subnet's gateway. It never changes."""
    if wanted.observed:
        return dict(wanted.observed)
    router_id = _router_id(project, wanted)
    if "port_id" in wanted.specification:
        return {"id": router_id, "port_id": project.resolve(CloudKind.PORT, wanted.specification["port_id"])}
    subnet = project.require(CloudKind.SUBNET, wanted.specification["subnet_id"])
    body = {
        "name": "",
        "network_id": subnet.observed["network_id"],
        "device_id": router_id,
        "device_owner": "network:router_interface",
        "fixed_ips": [{"subnet_id": subnet.external_id, "ip_address": subnet.observed["gateway_ip"]}],
    }
    port = ensure_port(project, wanted, "port", body)
    return {"id": router_id, "subnet_id": subnet.external_id, "port_id": port.id}


def _delete_interface(project: Project, gone: CloudObject) -> None:
    port = project.find(CloudKind.PORT, gone.observed.get("port_id"))
    if port is not None and PART_OF in port.arguments:
        cloud_objects.delete(project.tx, port.id)


def _interface_id(wanted: CloudObject, interface: Mapping[str, Any]) -> str:
    key = "port_id" if "port_id" in wanted.specification else "subnet_id"
    return f"{interface['id']}:{key}={interface[key]}"


def _floating_ip(project: Project, wanted: CloudObject) -> dict[str, Any]:
    """Return the members of a floating IP: a loopback address, so that it leads to the servers' processes."""
    members = wanted.specification
    network = members.get("floating_network_id") or _EXTERNAL_NETWORK
    return {
        "floating_network_id": project.resolve(CloudKind.NETWORK, network),
        "floating_ip_address": members.get("floating_ip_address") or loopback(wanted.id),
        **_target_in(project, members),
    }


def _reached(project: Project, floating_ip: CloudObject) -> dict[str, Any]:
    """Return what associations and port forwardings set of a floating IP."""
    target = _target(project, floating_ip)
    forwardings = _of(project, CloudKind.PORT_FORWARDING, floatingip_id=floating_ip.external_id)
    return {
        **target,
        "status": "ACTIVE" if target["port_id"] else "DOWN",
        "port_forwardings": [item.observed for item in forwardings],
    }


def _target(project: Project, floating_ip: CloudObject) -> dict[str, Any]:
    """Return the port and the address to which a floating IP leads, by itself or by an association."""
    associations = _of(project, CloudKind.FLOATING_IP_ASSOCIATION, id=floating_ip.external_id)
    source = next((item.observed for item in associations), floating_ip.observed)
    return {name: source.get(name) for name in ("port_id", "fixed_ip_address")}


def _associate(project: Project, wanted: CloudObject) -> dict[str, Any]:
    floating_ip = _floating_ip_id(project, wanted.specification["floatingip_id"])
    return {"id": floating_ip, **_target_in(project, wanted.specification)}


def _forward(project: Project, wanted: CloudObject) -> dict[str, Any]:
    port = project.require(CloudKind.PORT, wanted.specification["internal_port_id"])
    ids = {"floatingip_id": _floating_ip_id(project, wanted.specification["floatingip_id"])}
    return {**ids, "internal_port_id": port.external_id}


def _floating_ip_id(project: Project, ref: str) -> str:
    """Return the id of the floating IP with this id, address or name. Raises Invalid."""
    at_address = _of(project, CloudKind.FLOATING_IP, floating_ip_address=ref)
    floating_ip = at_address[0] if at_address else project.require(CloudKind.FLOATING_IP, ref)
    return str(floating_ip.external_id)


def _target_in(project: Project, members: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the port and the address that a specification names, or the first port of its server. Raises Invalid."""
    ref, server_id = members.get("port_id"), members.get("stoker:server_id")
    if server_id:
        server = project.find(CloudKind.SERVER, server_id)
        ref = next(iter(server.observed.get(PORTS, ()) if server is not None else ()), None)
        if ref is None:
            raise Invalid(f"The server {server_id} has no port.")
    if not ref:
        return {"port_id": None, "fixed_ip_address": None}
    port = project.require(CloudKind.PORT, ref)
    first = next((entry["ip_address"] for entry in port.observed["fixed_ips"]), None)
    return {"port_id": port.external_id, "fixed_ip_address": members.get("fixed_ip_address") or first}


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


def _of(project: Project, kind: CloudKind, **observed: str | None) -> list[CloudObject]:
    """Return the objects of a kind whose representations have these values."""
    return [item for item in project.of_kind(kind) if observed.items() <= item.observed.items()]


KINDS: Mapping[CloudKind, Kind] = {
    CloudKind.NETWORK: Kind(
        defaults={
            "port_security_enabled": True,
            "qos_policy_id": None,
            "tags": [],
            "status": "ACTIVE",
            "mtu": _MTU,
            "l2_adjacency": True,
            "segments": [],
            "router:external": False,
        },
        relate=_subnets,
    ),
    CloudKind.SUBNET: Kind(
        defaults={"host_routes": [], "tags": []},
        hidden=("prefixlen",),
        derive=_subnet,
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
            "dns_assignment": [],
        },
        derive=_port,
    ),
    CloudKind.SECURITY_GROUP: Kind(defaults={"description": "", "stateful": True}, derive=_security_group),
    CloudKind.SECURITY_GROUP_RULE: Kind(derive=_security_group_rule),
    CloudKind.ROUTER: Kind(defaults={"tags": [], "status": "ACTIVE"}, derive=_router, relate=_routes),
    CloudKind.ROUTER_INTERFACE: Kind(derive=_interface, remove=_delete_interface, identify=_interface_id),
    CloudKind.ROUTER_GATEWAY: Kind(
        derive=_set_gateway, identify=lambda _, gateway: f"{gateway['router_id']}:{gateway['network_id']}"
    ),
    CloudKind.EXTRA_ROUTE_SET: Kind(
        derive=lambda project, wanted: {"id": _router_id(project, wanted), "routes": wanted.specification["routes"]},
        identify=lambda _, routes: routes["id"],
    ),
    CloudKind.FLOATING_IP: Kind(
        defaults={"dns_name": "", "dns_domain": "", "router_id": None},
        derive=_floating_ip,
        relate=_reached,
    ),
    CloudKind.FLOATING_IP_ASSOCIATION: Kind(
        derive=_associate, identify=lambda _, association: f"{association['id']}:{association['port_id'] or ''}"
    ),
    CloudKind.PORT_FORWARDING: Kind(derive=_forward),
}
