"""OS::Neutron::ExtraRouteSet: routes of a router besides those of its interfaces and its gateway."""

from __future__ import annotations

from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import check_address, check_network, text


class NeutronExtraRouteSet(CloudType):
    name = "OS::Neutron::ExtraRouteSet"
    description = "Routes of a router besides those of its interfaces and its gateway."
    kind = CloudKind.EXTRA_ROUTE_SET
    properties = {
        "router": text("Id of the router.", required=True, constraint="neutron.router"),
        "routes": Property(
            kind="list",
            default=[],
            update_allowed=True,
            each=Property(
                kind="map",
                schema={
                    "destination": text("The network, in CIDR notation.", required=True),
                    "nexthop": text("Address of the next hop.", required=True),
                },
            ),
            description="The routes. Other routes of the router stay as they are.",
        ),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {"router_id": properties["router"], "routes": [dict(route) for route in properties["routes"] or ()]}

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a destination that is no network, or a next hop that is no address."""
        routes = properties["routes"]
        for index, route in enumerate(routes if isinstance(routes, list) else ()):
            if route is not UNKNOWN:
                check_network(f"routes[{index}].destination", route["destination"])
                check_address(f"routes[{index}].nexthop", route["nexthop"])
