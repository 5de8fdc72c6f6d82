"""OS::Neutron::RouterInterface: the connection of a router to a subnet."""

from __future__ import annotations

from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, text


class NeutronRouterInterface(CloudType):
    name = "OS::Neutron::RouterInterface"
    description = "The connection of a router to a subnet."
    kind = CloudKind.ROUTER_INTERFACE
    properties = {
        "router": text("Name or id of the router; required.", constraint="neutron.router"),
        "router_id": text("The same; deprecated.", constraint="neutron.router"),
        "subnet": text("Name or id of the subnet.", constraint="neutron.subnet"),
        "subnet_id": text("The same; deprecated.", constraint="neutron.subnet"),
        "port": text("Name or id of the port, in place of the subnet.", constraint="neutron.port"),
        "port_id": text("The same; deprecated.", constraint="neutron.port"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return body(
            properties,
            router_id="router_id",
            router="router_id",
            subnet_id="subnet_id",
            subnet="subnet_id",
            port_id="port_id",
            port="port_id",
        )

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless the router, and either a subnet or a port, are set."""
        if properties["router"] is None and properties["router_id"] is None:
            raise StackValidationFailed("Property router not assigned")
        subnet, port = (
            properties[name] if properties[name] is not None else properties[f"{name}_id"]
            for name in ("subnet", "port")
        )
        if subnet is None and port is None:
            raise StackValidationFailed("Either of the following properties must be specified: subnet, port.")
        if subnet is not None and port is not None and UNKNOWN not in (subnet, port):
            raise StackValidationFailed("Cannot define the following properties at the same time: subnet, port.")
