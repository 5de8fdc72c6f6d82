"""OS::Neutron::FloatingIPPortForward: a port of a floating IP that leads to a port of a server."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, check_address, text

_PROTOCOLS = ("tcp", "udp", "icmp", "icmp6", "sctp", "dccp")


def _number(description: str, **options: Any) -> Property:
    return Property(kind="integer", minimum=1, maximum=65535, update_allowed=True, description=description, **options)


class NeutronFloatingIpPortForward(CloudType):
    name = "OS::Neutron::FloatingIPPortForward"
    description = "A port of a floating IP that leads to a port of a server."
    kind = CloudKind.PORT_FORWARDING
    properties = {
        "internal_ip_address": text("Address of the internal port.", required=True, update_allowed=True),
        "internal_port_number": _number("Number of the port at the internal address."),
        "external_port": _number("Number of the port at the floating IP.", required=True),
        "internal_port": text(
            "Name or id of the internal port.", required=True, update_allowed=True, constraint="neutron.port"
        ),
        "protocol": text("Protocol.", required=True, update_allowed=True, allowed=_PROTOCOLS),
        "floating_ip": text("Id or address of a floating IP that leads to no port.", required=True),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return body(
            properties,
            floating_ip="floatingip_id",
            internal_port="internal_port_id",
            internal_ip_address="internal_ip_address",
            internal_port_number="internal_port",
            external_port="external_port",
            protocol="protocol",
        )

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for an internal address that is none."""
        check_address("internal_ip_address", properties["internal_ip_address"])
