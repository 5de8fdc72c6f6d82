"""Routers, their interfaces, floating IPs and security groups of the cloud of one machine. No traffic is affected."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import Invalid
from stoker.servers.local_cloud import addresses, machines, networks, router_settings
from stoker.servers.local_cloud.project import PlainHandler, Project, part_id
from stoker.store import cloud_objects

#: The network of addresses whose network no template names.
_EXTERNAL_NETWORK = "public"


class Routers(PlainHandler):
    """Routers."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        gateway = wanted.specification.get("external_gateway_info")
        if gateway is None:  # a resource of its own may have set it
            gateway = wanted.observed.get("external_gateway_info")
        elif gateway:
            gateway = router_settings.router_gateway(project, wanted.id, gateway)
        return {
            "id": wanted.external_id,
            "name": wanted.name,
            "admin_state_up": wanted.specification.get("admin_state_up", True),
            "status": "ACTIVE",
            "external_gateway_info": gateway or None,
            "routes": wanted.observed.get("routes", []),
            "tags": wanted.specification.get("tags", []),
            "tenant_id": project.id,
            "project_id": project.id,
        }


class RouterInterfaces:
    """Interfaces of routers: a port with the address of the subnet's gateway."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        router_id = project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])
        if "port_id" in wanted.specification:
            return {"id": router_id, "port_id": project.resolve(CloudKind.PORT, wanted.specification["port_id"])}
        subnet = project.find(CloudKind.SUBNET, wanted.specification["subnet_id"])
        if subnet is None:
            raise Invalid(f"Subnet {wanted.specification['subnet_id']} could not be found.")
        port = networks.ensure_part(
            project,
            wanted,
            "port",
            {
                "name": "",
                "network_id": subnet.observed["network_id"],
                "device_id": router_id,
                "device_owner": "network:router_interface",
                "fixed_ips": [{"subnet_id": subnet.external_id, "ip_address": subnet.observed["gateway_ip"]}],
            },
        )
        return {"id": router_id, "subnet_id": subnet.external_id, "port_id": port.id}

    def delete(self, project: Project, gone: CloudObject) -> None:
        cloud_objects.delete(project.tx, part_id(gone, "port"))

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        kind = CloudKind.PORT if "port_id" in wanted.specification else CloudKind.SUBNET
        key = f"{kind}_id"
        router_id = project.resolve(CloudKind.ROUTER, wanted.specification["router_id"])
        return f"{router_id}:{key}={project.resolve(kind, wanted.specification[key])}"


class FloatingIps(PlainHandler):
    """Floating IPs: loopback addresses, so that they lead to the servers' processes."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        before, members = wanted.observed, wanted.specification
        port_id = _port_of(project, members) or before.get("port_id")
        network = members.get("floating_network_id") or _EXTERNAL_NETWORK
        observed = {
            "id": wanted.external_id,
            "floating_network_id": project.resolve(CloudKind.NETWORK, network),
            "floating_ip_address": members.get("floating_ip_address") or addresses.loopback(wanted.id),
            "router_id": None,
            "status": "ACTIVE" if port_id else "DOWN",
            "dns_name": members.get("dns_name", ""),
            "dns_domain": members.get("dns_domain", ""),
            "port_forwardings": before.get("port_forwardings", []),
            "tenant_id": project.id,
            "project_id": project.id,
            **_target(project, port_id, members.get("fixed_ip_address") or before.get("fixed_ip_address")),
        }
        _refresh(project, wanted, observed, port_id, before.get("port_id"))
        return observed

    def delete(self, project: Project, gone: CloudObject) -> None:
        _refresh(project, gone, {**gone.observed, "port_id": None}, gone.observed.get("port_id"))


class FloatingIpAssociations:
    """Connections of floating IPs to ports."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        floating_ip = _floating_ip_of(project, wanted.specification)
        before = floating_ip.observed.get("port_id")
        former = wanted.observed.get("id")
        if former and former != floating_ip.external_id:
            self._end(project, former, wanted.observed.get("port_id"))
        target = _target(project, _port_of(project, wanted.specification), wanted.specification.get("fixed_ip_address"))
        changed = project.save(floating_ip, **target, status="ACTIVE")
        _refresh(project, changed, changed.observed, target["port_id"], before)
        return {"id": floating_ip.external_id, **target}

    def delete(self, project: Project, gone: CloudObject) -> None:
        self._end(project, gone.observed.get("id", ""), gone.observed.get("port_id"))

    def _end(self, project: Project, floating_ip_id: str, port_id: str | None) -> None:
        floating_ip = project.find(CloudKind.FLOATING_IP, floating_ip_id)
        if floating_ip is not None and floating_ip.observed.get("port_id") == port_id:
            changed = project.save(floating_ip, port_id=None, fixed_ip_address=None, status="DOWN")
            _refresh(project, changed, changed.observed, port_id)

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        floating_ip = _floating_ip_of(project, wanted.specification).external_id
        return f"{floating_ip}:{project.resolve(CloudKind.PORT, _port_of(project, wanted.specification) or '')}"


class SecurityGroups(PlainHandler):
    """Security groups, whose rules have no effect."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        rules = [
            {
                **rule,
                **({"remote_group_id": wanted.external_id} if rule.get("remote_group_id") == "_self" else {}),
                "id": part_id(wanted, f"rule {number}"),
                "security_group_id": wanted.external_id,
            }
            for number, rule in enumerate(wanted.specification.get("stoker:rules", ()))
        ]
        return {
            "id": wanted.external_id,
            "name": wanted.name,
            "description": wanted.specification.get("description", ""),
            "stateful": wanted.specification.get("stateful", True),
            "security_group_rules": rules,
            "tenant_id": project.id,
            "project_id": project.id,
        }


class SecurityGroupRules(PlainHandler):
    """Rules of security groups; they have no effect."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        group = project.resolve(CloudKind.SECURITY_GROUP, wanted.specification["security_group_id"])
        return {**wanted.specification, "id": wanted.external_id, "security_group_id": group, "project_id": project.id}


def _port_of(project: Project, members: Mapping[str, Any]) -> str | None:
    """Return the port that a specification names, or the first port of the server that it names. Raises Invalid."""
    server_id = members.get("stoker:server_id")
    if not server_id:
        return members.get("port_id")
    server = project.find(CloudKind.SERVER, server_id)
    ports = (server.observed.get("stoker:ports") or {}) if server is not None else {}
    if not ports:
        raise Invalid(f"The server {server_id} has no port.")
    return str(next(iter(ports)))


def _floating_ip_of(project: Project, members: Mapping[str, Any]) -> CloudObject:
    """Return the floating IP that a specification names by id or by address. Raises Invalid."""
    address = members.get("stoker:address")
    if address:
        stored = cloud_objects.of_kind(project.tx, project.id, CloudKind.FLOATING_IP)
        match = next((item for item in stored if item.observed.get("floating_ip_address") == address), None)
    else:
        match = project.find(CloudKind.FLOATING_IP, members["floatingip_id"])
    if match is None:
        raise Invalid(f"Floating IP {address or members['floatingip_id']} could not be found.")
    return match


def _target(project: Project, port_id: str | None, fixed_ip: str | None) -> dict[str, str | None]:
    """Return the port and the address to which a floating IP leads. Raises Invalid for a port that does not exist."""
    if not port_id:
        return {"port_id": None, "fixed_ip_address": None}
    port = project.find(CloudKind.PORT, port_id)
    if port is None:
        raise Invalid(f"Port {port_id} could not be found.")
    first = next((entry["ip_address"] for entry in port.observed["fixed_ips"]), None)
    return {"port_id": port.external_id, "fixed_ip_address": fixed_ip or first}


def _refresh(project: Project, floating_ip: CloudObject, observed: Mapping[str, Any], *port_ids: str | None) -> None:
    """Update the addresses of the servers with these ports. ``observed``: the floating IP, which may be unsaved."""
    for port_id in {id for id in port_ids if id}:
        port = project.find(CloudKind.PORT, port_id)
        server_id = port.observed.get("device_id") if port is not None else None
        server = project.find(CloudKind.SERVER, server_id) if server_id else None
        if server is not None:
            machines.refresh_addresses(project, server, unsaved={floating_ip.id: observed})
