"""OS::Neutron::FloatingIP: an address of an external network that leads to a port."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, text
from stoker_openstack.types.neutron_base import VALUE_SPECS, value_specs


class NeutronFloatingIp(CloudType):
    name = "OS::Neutron::FloatingIP"
    description = "An address of an external network that leads to a port."
    kind = CloudKind.FLOATING_IP
    id_constraint = "neutron.floatingip"
    properties = {
        "floating_network": text("Name or id of the external network; required.", constraint="neutron.network"),
        "floating_network_id": text("The same; deprecated.", constraint="neutron.network"),
        "floating_subnet": text("Name or id of the subnet of the address.", constraint="neutron.subnet"),
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

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {
            **body(
                properties,
                floating_network_id="floating_network_id",
                floating_network="floating_network_id",
                floating_subnet="subnet_id",
                floating_ip_address="floating_ip_address",
                port_id="port_id",
                fixed_ip_address="fixed_ip_address",
                dns_name="dns_name",
                dns_domain="dns_domain",
            ),
            **value_specs(properties),
        }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless the network is set, and both or none of the DNS properties."""
        if properties["floating_network"] is None and properties["floating_network_id"] is None:
            raise StackValidationFailed("Property floating_network not assigned")
        if (properties["dns_name"] is None) != (properties["dns_domain"] is None):
            raise StackValidationFailed("dns_name and dns_domain need each other: set both.")
