"""Gateways and extra routes of routers, and port forwardings of floating IPs. No traffic is affected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import Conflict, Invalid
from stoker.servers.local_cloud import addresses
from stoker.servers.local_cloud.project import PlainHandler, Project
from stoker.store import cloud_objects

_GATEWAY, _FORWARDINGS = "external_gateway_info", "port_forwardings"


class RouterGateways:
    """Gateways, which their routers show."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        router = project.require(CloudKind.ROUTER, wanted.specification["router_id"])
        network_id = project.resolve(CloudKind.NETWORK, wanted.specification["network_id"])
        gateway = router_gateway(project, router.id, {"network_id": network_id})
        project.save(router, **{_GATEWAY: gateway})
        return {"router_id": router.external_id, **gateway}

    def delete(self, project: Project, gone: CloudObject) -> None:
        router = project.find(CloudKind.ROUTER, gone.observed.get("router_id", ""))
        gateway = (router.observed.get(_GATEWAY) if router is not None else None) or {}
        if router is not None and gateway.get("network_id") == gone.observed.get("network_id"):
            project.save(router, **{_GATEWAY: None})

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        router_id = project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])
        return f"{router_id}:{project.resolve(CloudKind.NETWORK, wanted.specification['network_id'])}"


class ExtraRouteSets:
    """Sets of routes, which their routers list."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        router = project.require(CloudKind.ROUTER, wanted.specification["router_id"])
        others = _others(router, wanted)
        routes = [dict(route) for route in wanted.specification["routes"]]
        for route in routes:
            if route in others:
                name = f"{router.external_id},{route['destination']}={route['nexthop']}"
                raise Conflict(f"The physical resource for ({name}) exists.")
        project.save(router, routes=[*others, *routes])
        return {"id": router.external_id, "routes": routes}

    def delete(self, project: Project, gone: CloudObject) -> None:
        router = project.find(CloudKind.ROUTER, gone.observed.get("id", ""))
        if router is not None:
            project.save(router, routes=_others(router, gone))

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        return project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])


class PortForwardings(PlainHandler):
    """Port forwardings, which their floating IPs list."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        floating_ip = _find_floating_ip(project, wanted.specification["floatingip_id"])
        if floating_ip.observed.get("port_id"):
            raise Invalid(f"Floating IP {floating_ip.external_id} leads to a port: it can have no port forwarding.")
        port = project.require(CloudKind.PORT, wanted.specification["internal_port_id"])
        observed = {**wanted.specification, "id": wanted.external_id, "internal_port_id": port.external_id}
        observed["floatingip_id"] = floating_ip.external_id
        others = [entry for entry in floating_ip.observed.get(_FORWARDINGS, ()) if entry["id"] != wanted.external_id]
        ends = [(entry["external_port"], entry["protocol"]) for entry in others]
        if (observed["external_port"], observed["protocol"]) in ends:
            raise Conflict(
                f"Floating IP {floating_ip.external_id} already forwards port {observed['external_port']} of"
                f" {observed['protocol']}."
            )
        project.save(floating_ip, **{_FORWARDINGS: [*others, observed]})
        return observed

    def delete(self, project: Project, gone: CloudObject) -> None:
        floating_ip = project.find(CloudKind.FLOATING_IP, gone.observed.get("floatingip_id", ""))
        if floating_ip is not None:
            left = [entry for entry in floating_ip.observed.get(_FORWARDINGS, ()) if entry["id"] != gone.external_id]
            project.save(floating_ip, **{_FORWARDINGS: left})


def router_gateway(project: Project, router_id: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the representation of a router's gateway, with its address in the external network."""
    network_id = project.resolve(CloudKind.NETWORK, wanted["network_id"])
    fixed_ips = wanted.get("external_fixed_ips") or [{"ip_address": addresses.loopback(router_id)}]
    return {"enable_snat": True, **wanted, "network_id": network_id, "external_fixed_ips": fixed_ips}


def _others(router: CloudObject, own: CloudObject) -> Sequence[Mapping[str, str]]:
    """Return the router's routes that do not belong to a set."""
    former = own.observed.get("routes", ())
    return [route for route in router.observed.get("routes", ()) if route not in former]


def _find_floating_ip(project: Project, ref: str) -> CloudObject:
    """Return the floating IP with this id or address. Raises Invalid."""
    for item in cloud_objects.of_kind(project.tx, project.id, CloudKind.FLOATING_IP):
        if ref in (item.external_id, item.observed.get("floating_ip_address")):
            return item
    raise Invalid(f"Floating IP {ref} could not be found.")
