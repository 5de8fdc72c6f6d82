"""Routers with their interfaces, gateways and routes; floating IPs with their targets. No traffic is affected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.model.errors import Conflict, Invalid
from stoker_openstack.model import CloudKind, CloudObject
from stoker_openstack.simulated import addresses, networks
from stoker_openstack.simulated.project import Kind, Project, part_id
from stoker_openstack.store import cloud_objects

#: The network of addresses whose network no template names.
_EXTERNAL_NETWORK = "public"
_GATEWAY, _FORWARDINGS = "external_gateway_info", "port_forwardings"


def _router(project: Project, wanted: CloudObject) -> dict[str, Any]:
    gateway = wanted.specification.get(_GATEWAY)
    if gateway is None:  # a resource of its own may have set it
        gateway = wanted.observed.get(_GATEWAY)
    elif gateway:
        gateway = _gateway(project, wanted.id, gateway)
    return {_GATEWAY: gateway or None}


def _gateway(project: Project, router_id: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the representation of a router's gateway, with its address in the external network."""
    network_id = project.resolve(CloudKind.NETWORK, wanted["network_id"])
    fixed_ips = wanted.get("external_fixed_ips") or [{"ip_address": addresses.loopback(router_id)}]
    return {"enable_snat": True, **wanted, "network_id": network_id, "external_fixed_ips": fixed_ips}


def _router_id(project: Project, wanted: CloudObject) -> str:
    return project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])


def _interface(project: Project, wanted: CloudObject) -> dict[str, Any]:
    """Return the interface, with a port that has the address of the subnet's gateway."""
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
    port = networks.ensure_port(project, wanted, "port", body)
    return {"id": router_id, "subnet_id": subnet.external_id, "port_id": port.id}


def _delete_interface(project: Project, gone: CloudObject) -> None:
    cloud_objects.delete(project.tx, part_id(gone, "port"))


def _interface_id(project: Project, wanted: CloudObject) -> str:
    kind = CloudKind.PORT if "port_id" in wanted.specification else CloudKind.SUBNET
    key = f"{kind}_id"
    return f"{_router_id(project, wanted)}:{key}={project.resolve(kind, wanted.specification[key])}"


def _set_gateway(project: Project, wanted: CloudObject) -> dict[str, Any]:
    router = project.require(CloudKind.ROUTER, wanted.specification["router_id"])
    gateway = _gateway(project, router.id, {"network_id": wanted.specification["network_id"]})
    project.save(router, **{_GATEWAY: gateway})
    return {"router_id": router.external_id, **gateway}


def _unset_gateway(project: Project, gone: CloudObject) -> None:
    router = project.find(CloudKind.ROUTER, gone.observed.get("router_id"))
    gateway = (router.observed.get(_GATEWAY) if router is not None else None) or {}
    if router is not None and gateway.get("network_id") == gone.observed.get("network_id"):
        project.save(router, **{_GATEWAY: None})


def _gateway_id(project: Project, wanted: CloudObject) -> str:
    network_id = project.resolve(CloudKind.NETWORK, wanted.specification["network_id"])
    return f"{_router_id(project, wanted)}:{network_id}"


def _add_routes(project: Project, wanted: CloudObject) -> dict[str, Any]:
    router = project.require(CloudKind.ROUTER, wanted.specification["router_id"])
    others = _other_routes(router, wanted)
    routes = [dict(route) for route in wanted.specification["routes"]]
    for route in routes:
        if route in others:
            name = f"{router.external_id},{route['destination']}={route['nexthop']}"
            raise Conflict(f"The physical resource for ({name}) exists.")
    project.save(router, routes=[*others, *routes])
    return {"id": router.external_id, "routes": routes}


def _remove_routes(project: Project, gone: CloudObject) -> None:
    router = project.find(CloudKind.ROUTER, gone.observed.get("id"))
    if router is not None:
        project.save(router, routes=_other_routes(router, gone))


def _other_routes(router: CloudObject, own: CloudObject) -> Sequence[Mapping[str, str]]:
    """Return the router's routes that do not belong to a set."""
    former = own.observed.get("routes", ())
    return [route for route in router.observed.get("routes", ()) if route not in former]


def _floating_ip(project: Project, wanted: CloudObject) -> dict[str, Any]:
    """Return the members of a floating IP: a loopback address, so that it leads to the servers' processes."""
    before, members = wanted.observed, wanted.specification
    port_id = _port_of(project, members) or before.get("port_id")
    observed = {
        "floating_network_id": project.resolve(
            CloudKind.NETWORK, members.get("floating_network_id") or _EXTERNAL_NETWORK
        ),
        "floating_ip_address": members.get("floating_ip_address") or addresses.loopback(wanted.id),
        "status": "ACTIVE" if port_id else "DOWN",
        **_target(project, port_id, members.get("fixed_ip_address") or before.get("fixed_ip_address")),
    }
    _refresh(project, wanted, observed, port_id, before.get("port_id"))
    return observed


def _delete_floating_ip(project: Project, gone: CloudObject) -> None:
    _refresh(project, gone, {**gone.observed, "port_id": None}, gone.observed.get("port_id"))


def _associate(project: Project, wanted: CloudObject) -> dict[str, Any]:
    floating_ip = _floating_ip_of(project, wanted.specification)
    before, former = floating_ip.observed.get("port_id"), wanted.observed.get("id")
    if former and former != floating_ip.external_id:
        _dissociate(project, wanted)
    target = _target(project, _port_of(project, wanted.specification), wanted.specification.get("fixed_ip_address"))
    changed = project.save(floating_ip, **target, status="ACTIVE")
    _refresh(project, changed, changed.observed, target["port_id"], before)
    return {"id": floating_ip.external_id, **target}


def _dissociate(project: Project, gone: CloudObject) -> None:
    port_id = gone.observed.get("port_id")
    floating_ip = project.find(CloudKind.FLOATING_IP, gone.observed.get("id"))
    if floating_ip is not None and floating_ip.observed.get("port_id") == port_id:
        changed = project.save(floating_ip, port_id=None, fixed_ip_address=None, status="DOWN")
        _refresh(project, changed, changed.observed, port_id)


def _association_id(project: Project, wanted: CloudObject) -> str:
    floating_ip = _floating_ip_of(project, wanted.specification).external_id
    return f"{floating_ip}:{project.resolve(CloudKind.PORT, _port_of(project, wanted.specification) or '')}"


def _forward(project: Project, wanted: CloudObject) -> dict[str, Any]:
    floating_ip = _require_floating_ip(project, wanted.specification["floatingip_id"])
    if floating_ip.observed.get("port_id"):
        raise Invalid(f"Floating IP {floating_ip.external_id} leads to a port: it can have no port forwarding.")
    port = project.require(CloudKind.PORT, wanted.specification["internal_port_id"])
    ids = {"internal_port_id": port.external_id, "floatingip_id": floating_ip.external_id}
    observed = {**wanted.specification, "id": wanted.external_id, **ids}
    end = (observed["external_port"], observed["protocol"])
    entries = floating_ip.observed.get(_FORWARDINGS, ())
    if any((one["external_port"], one["protocol"]) == end for one in entries if one["id"] != wanted.external_id):
        raise Conflict(f"Floating IP {floating_ip.external_id} already forwards port {end[0]} of {end[1]}.")
    project.replace_entries(floating_ip, _FORWARDINGS, lambda entry: entry["id"] == wanted.external_id, observed)
    return observed


def _end_forwarding(project: Project, gone: CloudObject) -> None:
    floating_ip = project.find(CloudKind.FLOATING_IP, gone.observed.get("floatingip_id"))
    project.replace_entries(floating_ip, _FORWARDINGS, lambda entry: entry["id"] == gone.external_id)


def _port_of(project: Project, members: Mapping[str, Any]) -> str | None:
    """Return the port that a specification names, or the first port of the server that it names. Raises Invalid."""
    server_id = members.get("stoker:server_id")
    if not server_id:
        return members.get("port_id")
    server = project.find(CloudKind.SERVER, server_id)
    ports = (server.observed.get(networks.PORTS) or {}) if server is not None else {}
    if not ports:
        raise Invalid(f"The server {server_id} has no port.")
    return str(next(iter(ports)))


def _floating_ip_of(project: Project, members: Mapping[str, Any]) -> CloudObject:
    """Return the floating IP that a specification names by id or by address. Raises Invalid."""
    return _require_floating_ip(project, members.get("stoker:address") or members["floatingip_id"])


def _require_floating_ip(project: Project, ref: str) -> CloudObject:
    """Return the floating IP with this id, address or name. Raises Invalid."""
    stored = project.of_kind(CloudKind.FLOATING_IP)
    at_address = next((item for item in stored if item.observed.get("floating_ip_address") == ref), None)
    floating_ip = at_address or project.find(CloudKind.FLOATING_IP, ref)
    if floating_ip is None:
        raise Invalid(f"Floating IP {ref} could not be found.")
    return floating_ip


def _target(project: Project, port_id: str | None, fixed_ip: str | None) -> dict[str, str | None]:
    """Return the port and the address to which a floating IP leads. Raises Invalid for a port that does not exist."""
    if not port_id:
        return {"port_id": None, "fixed_ip_address": None}
    port = project.require(CloudKind.PORT, port_id)
    first = next((entry["ip_address"] for entry in port.observed["fixed_ips"]), None)
    return {"port_id": port.external_id, "fixed_ip_address": fixed_ip or first}


def _refresh(project: Project, floating_ip: CloudObject, observed: Mapping[str, Any], *port_ids: str | None) -> None:
    """Update the addresses of the servers with these ports. ``observed``: the floating IP, which may be unsaved."""
    others = [item.observed for item in project.of_kind(CloudKind.FLOATING_IP) if item.id != floating_ip.id]
    for port_id in set(port_ids):
        networks.refresh_server(project, port_id, [*others, observed])


KINDS: Mapping[CloudKind, Kind] = {
    CloudKind.ROUTER: Kind(
        defaults={"admin_state_up": True, "tags": []}, kept={"routes": []}, fixed={"status": "ACTIVE"}, derive=_router
    ),
    CloudKind.ROUTER_INTERFACE: Kind(common=(), derive=_interface, remove=_delete_interface, identify=_interface_id),
    CloudKind.ROUTER_GATEWAY: Kind(common=(), derive=_set_gateway, remove=_unset_gateway, identify=_gateway_id),
    CloudKind.EXTRA_ROUTE_SET: Kind(common=(), derive=_add_routes, remove=_remove_routes, identify=_router_id),
    CloudKind.FLOATING_IP: Kind(
        defaults={"dns_name": "", "dns_domain": ""},
        kept={_FORWARDINGS: []},
        fixed={"router_id": None},
        common=("id", "tenant_id", "project_id"),
        derive=_floating_ip,
        remove=_delete_floating_ip,
    ),
    CloudKind.FLOATING_IP_ASSOCIATION: Kind(common=(), derive=_associate, remove=_dissociate, identify=_association_id),
    CloudKind.PORT_FORWARDING: Kind(common=(), derive=_forward, remove=_end_forwarding),
}
