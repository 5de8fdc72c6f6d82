"""
Routers between networks, with their interfaces, gateways and extra routes; addresses of an external network that lead
to ports, their associations, and the forwarding of single ports.
"""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, was_specified
from stoker_openstack.types.cloud_properties import (
    ADMIN_STATE_UP,
    NAME,
    TAGS,
    TENANT_ID,
    VALUE_SPECS,
    check_form,
    flag,
    integer,
    mapping,
    maps,
    reference,
    refuse_several,
    require,
    shown,
    text,
    texts,
)

_NO_ADDRESS = "Invalid IP address"


class NeutronRouter(CloudType):
    name = "OS::Neutron::Router"
    description = "A router between networks."
    kind = CloudKind.ROUTER
    properties = {
        "name": NAME,
        "external_gateway_info": mapping(
            "The external network, to which the router is the gateway.",
            update_allowed=True,
            schema={
                "network": text(
                    "Name or id of the external network.",
                    key="network_id",
                    constraint="neutron.network",
                    required=True,
                    update_allowed=True,
                ),
                "enable_snat": flag("Whether the router translates source addresses.", update_allowed=True),
                "external_fixed_ips": maps(
                    "Addresses of the router in the external network.",
                    {
                        "ip_address": text("The address."),
                        "subnet": text("Name or id of the subnet.", key="subnet_id", constraint="neutron.subnet"),
                    },
                    update_allowed=True,
                ),
            },
        ),
        "admin_state_up": ADMIN_STATE_UP,
        "l3_agent_id": text("One L3 agent; deprecated.", key=None, update_allowed=True),
        "l3_agent_ids": texts(
            "L3 agents of the router, for administrators only.", key="stoker:l3_agent_ids", update_allowed=True
        ),
        "distributed": flag("Whether the router is distributed, for administrators only."),
        "ha": flag("Whether the router is highly available, for administrators only."),
        "availability_zone_hints": texts("Availability zones of the router.", update_allowed=True),
        "tenant_id": TENANT_ID,
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        **shown(properties, "admin_state_up", "external_gateway_info", "name"),
        "status": "Status.",
        "tenant_id": "Project.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = super().specify(context, resource, properties)
        if properties["l3_agent_id"] is not None:
            specified.setdefault("stoker:l3_agent_ids", [properties["l3_agent_id"]])
        if properties["external_gateway_info"] is None and was_specified(context, resource, "external_gateway_info"):
            specified["external_gateway_info"] = {}
        return specified

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        refuse_several({name: properties[name] or None for name in ("distributed", "ha")})
        agents = properties["l3_agent_ids"]
        if properties["ha"] is not True and isinstance(agents, list) and len(agents) > 1:
            raise StackValidationFailed("Non HA routers can only have one L3 agent.")


class NeutronRouterGateway(CloudType):
    name = "OS::Neutron::RouterGateway"
    description = "The external network of a router; external_gateway_info of OS::Neutron::Router does the same."
    kind = CloudKind.ROUTER_GATEWAY
    properties = {
        "router_id": text("Id of the router.", required=True, constraint="neutron.router"),
        **reference("network", "Name or id of the external network; required.", constraint="neutron.network"),
    }

    def validate(self, properties: Properties) -> None:
        require(properties, "network")


class NeutronRouterInterface(CloudType):
    name = "OS::Neutron::RouterInterface"
    description = "The connection of a router to a subnet."
    kind = CloudKind.ROUTER_INTERFACE
    properties = {
        **reference("router", "Name or id of the router; required.", constraint="neutron.router"),
        **reference("subnet", "Name or id of the subnet.", constraint="neutron.subnet"),
        **reference("port", "Name or id of the port, in place of the subnet.", constraint="neutron.port"),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless the router, and either a subnet or a port, are set."""
        require(properties, "router")
        targets = {
            name: properties[f"{name}_id"] if properties[name] is None else properties[name]
            for name in ("subnet", "port")
        }
        if not any(value is not None for value in targets.values()):
            raise StackValidationFailed("Either of the following properties must be specified: subnet, port.")
        refuse_several(targets)


class NeutronExtraRouteSet(CloudType):
    name = "OS::Neutron::ExtraRouteSet"
    description = "Routes of a router besides those of its interfaces and its gateway."
    kind = CloudKind.EXTRA_ROUTE_SET
    properties = {
        "router": text("Id of the router.", key="router_id", required=True, constraint="neutron.router"),
        "routes": maps(
            "The routes. Other routes of the router stay as they are.",
            {
                "destination": text("The network, in CIDR notation.", required=True),
                "nexthop": text("Address of the next hop.", required=True),
            },
            default=[],
            update_allowed=True,
        ),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a destination that is no network, or a next hop that is no address."""
        routes = properties["routes"]
        for index, route in enumerate(routes if isinstance(routes, list) else ()):
            if route is not UNKNOWN:
                check_form(f"routes[{index}].destination", route["destination"], ip_network, "Invalid net cidr")
                check_form(f"routes[{index}].nexthop", route["nexthop"], ip_address, _NO_ADDRESS)


_PROTOCOLS = ("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")


def _number(description: str, **options: Any) -> Property:
    return integer(description, minimum=1, maximum=65535, update_allowed=True, **options)


class NeutronFloatingIp(CloudType):
    name = "OS::Neutron::FloatingIP"
    description = "An address of an external network that leads to a port."
    kind = CloudKind.FLOATING_IP
    properties = {
        **reference("floating_network", "Name or id of the external network; required.", constraint="neutron.network"),
        "floating_subnet": text(
            "Name or id of the subnet of the address.", key="subnet_id", constraint="neutron.subnet"
        ),
        "floating_ip_address": text("The address, for administrators only."),
        "port_id": text("Id of the port to which the address leads.", constraint="neutron.port", update_allowed=True),
        "fixed_ip_address": text("Address of the port, if it has several.", update_allowed=True),
        "dns_name": text("DNS name of the address.", update_allowed=True),
        "dns_domain": text("DNS domain of the address.", update_allowed=True),
        "value_specs": replace(VALUE_SPECS, update_allowed=False),
    }
    attributes = {
        "fixed_ip_address": "Address of the port.",
        "floating_ip_address": "The address.",
        "floating_network_id": "Id of the external network.",
        "port_id": "Id of the port.",
        "router_id": "Id of the router.",
        "tenant_id": "Project.",
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless the network is set, and both or none of the DNS properties."""
        require(properties, "floating_network")
        if (properties["dns_name"] is None) != (properties["dns_domain"] is None):
            raise StackValidationFailed("dns_name and dns_domain need each other: set both.")


class NeutronFloatingIpAssociation(CloudType):
    name = "OS::Neutron::FloatingIPAssociation"
    description = "The connection of a floating IP to a port."
    kind = CloudKind.FLOATING_IP_ASSOCIATION
    properties = {
        "floatingip_id": text("Id of the floating IP.", required=True, update_allowed=True),
        "port_id": text("Id of the port.", constraint="neutron.port", required=True, update_allowed=True),
        "fixed_ip_address": text("Address of the port, if it has several.", update_allowed=True),
    }


class NeutronFloatingIpPortForward(CloudType):
    name = "OS::Neutron::FloatingIPPortForward"
    description = "A port of a floating IP that leads to a port of a server."
    kind = CloudKind.PORT_FORWARDING
    properties = {
        "internal_ip_address": text("Address of the internal port.", required=True, update_allowed=True),
        "internal_port_number": _number("Number of the port at the internal address.", key="internal_port"),
        "external_port": _number("Number of the port at the floating IP.", required=True),
        "internal_port": text(
            "Name or id of the internal port.",
            key="internal_port_id",
            required=True,
            update_allowed=True,
            constraint="neutron.port",
        ),
        "protocol": text("Protocol.", required=True, update_allowed=True, allowed=_PROTOCOLS),
        "floating_ip": text(
            "Id or address of a floating IP that leads to no port.", key="floatingip_id", required=True
        ),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for an internal address that is none."""
        check_form("internal_ip_address", properties["internal_ip_address"], ip_address, _NO_ADDRESS)
