"""OS::Neutron::RouterGateway: the external network of a router."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, text
from stoker_openstack.types.neutron_subnet import require_network


class NeutronRouterGateway(CloudType):
    name = "OS::Neutron::RouterGateway"
    description = "The external network of a router; external_gateway_info of OS::Neutron::Router does the same."
    kind = CloudKind.ROUTER_GATEWAY
    properties = {
        "router_id": text("Id of the router.", required=True, constraint="neutron.router"),
        "network": text("Name or id of the external network; required.", constraint="neutron.network"),
        "network_id": text("The same; deprecated.", constraint="neutron.network"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return body(properties, router_id="router_id", network_id="network_id", network="network_id")

    def validate(self, properties: Properties) -> None:
        require_network(properties)
