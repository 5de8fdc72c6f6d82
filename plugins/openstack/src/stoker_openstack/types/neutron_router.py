"""OS::Neutron::Router: a router between networks."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, was_specified
from stoker_openstack.types.cloud_properties import body, flag, text, texts
from stoker_openstack.types.neutron_base import ADMIN_STATE_UP, NAME, TAGS, TENANT_ID, VALUE_SPECS, named


def _gateway(gateway: Properties) -> dict[str, Any]:
    members = body(gateway, network="network_id", enable_snat="enable_snat")
    if gateway["external_fixed_ips"] is not None:
        members["external_fixed_ips"] = [
            body(entry, ip_address="ip_address", subnet="subnet_id") for entry in gateway["external_fixed_ips"]
        ]
    return members


class NeutronRouter(CloudType):
    name = "OS::Neutron::Router"
    description = "A router between networks."
    kind = CloudKind.ROUTER
    id_constraint = "neutron.router"
    properties = {
        "name": NAME,
        "external_gateway_info": Property(
            kind="map",
            update_allowed=True,
            schema={
                "network": text(
                    "Name or id of the external network.",
                    constraint="neutron.network",
                    required=True,
                    update_allowed=True,
                ),
                "enable_snat": flag("Whether the router translates source addresses.", update_allowed=True),
                "external_fixed_ips": Property(
                    kind="list",
                    update_allowed=True,
                    each=Property(
                        kind="map",
                        schema={
                            "ip_address": text("The address."),
                            "subnet": text("Name or id of the subnet.", constraint="neutron.subnet"),
                        },
                    ),
                    description="Addresses of the router in the external network.",
                ),
            },
            description="The external network, to which the router is the gateway.",
        ),
        "admin_state_up": ADMIN_STATE_UP,
        "l3_agent_id": text("One L3 agent; deprecated.", update_allowed=True),
        "l3_agent_ids": texts("L3 agents of the router, for administrators only.", update_allowed=True),
        "distributed": flag("Whether the router is distributed, for administrators only."),
        "ha": flag("Whether the router is highly available, for administrators only."),
        "availability_zone_hints": texts("Availability zones of the router.", update_allowed=True),
        "tenant_id": TENANT_ID,
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        "admin_state_up": "Whether the router is in use.",
        "external_gateway_info": "The external network.",
        "name": "Name.",
        "status": "Status.",
        "tenant_id": "Project.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = named(
            context,
            resource,
            properties,
            admin_state_up="admin_state_up",
            ha="ha",
            distributed="distributed",
            tenant_id="tenant_id",
            availability_zone_hints="availability_zone_hints",
            l3_agent_ids="stoker:l3_agent_ids",
        )
        if properties["l3_agent_id"] is not None and properties["l3_agent_ids"] is None:
            members["stoker:l3_agent_ids"] = [properties["l3_agent_id"]]
        gateway = properties["external_gateway_info"]
        if gateway is not None:
            members["external_gateway_info"] = _gateway(gateway)
        elif was_specified(context, resource, "external_gateway_info"):
            members["external_gateway_info"] = {}
        return members

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        if properties["ha"] is True and properties["distributed"] is True:
            raise StackValidationFailed("Cannot define the following properties at the same time: distributed, ha.")
        agents = properties["l3_agent_ids"]
        if properties["ha"] is not True and isinstance(agents, list) and len(agents) > 1:
            raise StackValidationFailed("Non HA routers can only have one L3 agent.")
