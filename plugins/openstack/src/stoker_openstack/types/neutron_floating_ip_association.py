"""OS::Neutron::FloatingIPAssociation: the connection of a floating IP to a port."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, text


class NeutronFloatingIpAssociation(CloudType):
    name = "OS::Neutron::FloatingIPAssociation"
    description = "The connection of a floating IP to a port."
    kind = CloudKind.FLOATING_IP_ASSOCIATION
    properties = {
        "floatingip_id": text("Id of the floating IP.", required=True, update_allowed=True),
        "port_id": text("Id of the port.", constraint="neutron.port", required=True, update_allowed=True),
        "fixed_ip_address": text("Address of the port, if it has several.", update_allowed=True),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return body(properties, floatingip_id="floatingip_id", port_id="port_id", fixed_ip_address="fixed_ip_address")
