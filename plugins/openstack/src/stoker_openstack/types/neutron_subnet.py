"""OS::Neutron::Subnet: a range of addresses of a network."""

from __future__ import annotations

from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, was_specified
from stoker_openstack.types.cloud_properties import flag, is_known, text, texts
from stoker_openstack.types.neutron_base import NAME, TAGS, TENANT_ID, VALUE_SPECS, named

_IPV6_MODES = ("dhcpv6-stateful", "dhcpv6-stateless", "slaac")


def require_network(properties: Properties) -> None:
    """Raise StackValidationFailed unless the network is set, by its present or its former name of the property."""
    if properties["network"] is None and properties["network_id"] is None:
        raise StackValidationFailed("Property network not assigned")


def _range(first: str, second: str) -> Property:
    return Property(
        kind="map",
        schema={first: text(f"The {first}.", required=True), second: text(f"The {second}.", required=True)},
    )


class NeutronSubnet(CloudType):
    name = "OS::Neutron::Subnet"
    description = "A range of addresses of a network."
    kind = CloudKind.SUBNET
    id_constraint = "neutron.subnet"
    properties = {
        "network": text("Name or id of the network; required.", constraint="neutron.network"),
        "network_id": text("The same; deprecated.", constraint="neutron.network"),
        "subnetpool": text(
            "Name or id of the pool from which the subnet gets its addresses.", constraint="neutron.subnetpool"
        ),
        "prefixlen": Property(kind="integer", minimum=0, description="Length of the prefix from the pool."),
        "cidr": text("The addresses."),
        "name": NAME,
        "gateway_ip": text("Address of the gateway; an empty text for none.", update_allowed=True),
        "dns_nameservers": texts("Addresses of name servers.", default=[], update_allowed=True),
        "ip_version": Property(kind="integer", default=4, allowed=(4, 6), description="Version of IP."),
        "enable_dhcp": flag("Whether the network serves DHCP.", default=True, update_allowed=True),
        "allocation_pools": Property(
            kind="list", each=_range("start", "end"), update_allowed=True, description="Ranges of addresses for ports."
        ),
        "tenant_id": TENANT_ID,
        "host_routes": Property(
            kind="list", each=_range("destination", "nexthop"), update_allowed=True, description="Routes for servers."
        ),
        "ipv6_ra_mode": text("Mode of router advertisements.", allowed=_IPV6_MODES),
        "ipv6_address_mode": text("Mode of address assignment.", allowed=_IPV6_MODES),
        "segment": text("Name or id of the segment.", update_allowed=True),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        "allocation_pools": "Ranges of addresses for ports.",
        "cidr": "The addresses.",
        "dns_nameservers": "Addresses of name servers.",
        "enable_dhcp": "Whether the network serves DHCP.",
        "gateway_ip": "Address of the gateway.",
        "host_routes": "Routes for servers.",
        "ip_version": "Version of IP.",
        "name": "Name.",
        "network_id": "Id of the network.",
        "tenant_id": "Project.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = named(
            context,
            resource,
            properties,
            network_id="network_id",
            network="network_id",
            subnetpool="subnetpool_id",
            prefixlen="prefixlen",
            cidr="cidr",
            gateway_ip="gateway_ip",
            dns_nameservers="dns_nameservers",
            ip_version="ip_version",
            enable_dhcp="enable_dhcp",
            allocation_pools="allocation_pools",
            tenant_id="tenant_id",
            host_routes="host_routes",
            ipv6_ra_mode="ipv6_ra_mode",
            ipv6_address_mode="ipv6_address_mode",
            segment="segment_id",
        )
        if members.get("gateway_ip") == "":
            members["gateway_ip"] = None  # as in Heat, an empty text means that the subnet has no gateway
        # As in Heat, an update that no longer has these properties empties them.
        for name, empty in (("gateway_ip", None), ("allocation_pools", [])):
            if properties[name] is None and was_specified(context, resource, name):
                members[name] = empty
        return members

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        require_network(properties)
        cidr, pool, prefix = (properties[name] for name in ("cidr", "subnetpool", "prefixlen"))
        if cidr is None and pool is None and prefix is None:
            raise StackValidationFailed("Either of the following properties must be specified: cidr, subnetpool.")
        if is_known(cidr, pool) and cidr is not None and pool is not None:
            raise StackValidationFailed("Cannot define the following properties at the same time: cidr, subnetpool.")
        if is_known(cidr, prefix) and cidr is not None and prefix is not None:
            raise StackValidationFailed("Cannot define the following properties at the same time: cidr, prefixlen.")
        modes = [properties[name] for name in ("ipv6_ra_mode", "ipv6_address_mode")]
        if properties["ip_version"] == 4 and any(mode is not None for mode in modes):
            raise StackValidationFailed("ipv6_ra_mode and ipv6_address_mode are not supported for ipv4.")
        if is_known(*modes) and all(modes) and modes[0] != modes[1]:
            raise StackValidationFailed("When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal.")
