"""Addresses of an external network that lead to ports, their associations, and the forwarding of single ports."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.resources.base import Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import Member, check_address, require, text
from stoker_openstack.types.neutron_base import VALUE_SPECS, NeutronType

_PROTOCOLS = ("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")


def _number(description: str, **options: Any) -> Property:
    return Member(kind="integer", minimum=1, maximum=65535, update_allowed=True, description=description, **options)


class NeutronFloatingIp(NeutronType):
    name = "OS::Neutron::FloatingIP"
    description = "An address of an external network that leads to a port."
    kind = CloudKind.FLOATING_IP
    id_constraint = "neutron.floatingip"
    properties = {
        "floating_network": text(
            "Name or id of the external network; required.", key="floating_network_id", constraint="neutron.network"
        ),
        "floating_network_id": text("The same; deprecated.", constraint="neutron.network"),
        "floating_subnet": text(
            "Name or id of the subnet of the address.", key="subnet_id", constraint="neutron.subnet"
        ),
        "floating_ip_address": text("The address, for administrators only."),
        "port_id": text("Id of the port to which the address leads.", constraint="neutron.port", update_allowed=True),
        "fixed_ip_address": text("Address of the port, if it has several.", update_allowed=True),
        "dns_name": text("DNS name of the address.", update_allowed=True),
        "dns_domain": text("DNS domain of the address.", update_allowed=True),
        "value_specs": Property(kind="map", default={}, description=VALUE_SPECS.description),
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
        check_address("internal_ip_address", properties["internal_ip_address"])
