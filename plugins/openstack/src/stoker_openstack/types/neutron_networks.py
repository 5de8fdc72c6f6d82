"""OS::Neutron::Net: a network; OS::Neutron::Subnet: a range of addresses of a network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, was_specified
from stoker_openstack.types.cloud_properties import (
    ADMIN_STATE_UP,
    NAME,
    PORT_SECURITY,
    QOS_POLICY,
    TAGS,
    TENANT_ID,
    VALUE_SPECS,
    flag,
    integer,
    is_known,
    maps,
    reference,
    refuse_several,
    require,
    shown,
    text,
    texts,
)

_IPV6_MODES = ("dhcpv6-stateful", "dhcpv6-stateless", "slaac")


def _range(first: str, second: str) -> Mapping[str, Property]:
    return {name: text(f"The {name}.", required=True) for name in (first, second)}


class NeutronNet(CloudType):
    name = "OS::Neutron::Net"
    description = "A network."
    kind = CloudKind.NETWORK
    properties = {
        "name": NAME,
        "admin_state_up": ADMIN_STATE_UP,
        "shared": flag("Whether other projects may use the network.", default=False, update_allowed=True),
        "tenant_id": TENANT_ID,
        "dhcp_agent_ids": texts(
            "Agents that serve DHCP, for administrators only.", key="stoker:dhcp_agent_ids", update_allowed=True
        ),
        "port_security_enabled": PORT_SECURITY,
        "qos_policy": QOS_POLICY,
        "dns_domain": text("DNS domain of the network's ports.", update_allowed=True),
        "availability_zone_hints": texts("Availability zones of the network."),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        **shown(properties, "admin_state_up", "name", "port_security_enabled"),
        "l2_adjacency": "Whether all ports of the network share one segment.",
        "mtu": "Maximum transmission unit.",
        "qos_policy_id": "Id of the QoS policy.",
        "segments": "Segments of the network.",
        "status": "Status.",
        "subnets": "Ids of the subnets.",
        "tenant_id": "Project.",
    }


class NeutronSubnet(CloudType):
    name = "OS::Neutron::Subnet"
    description = "A range of addresses of a network."
    kind = CloudKind.SUBNET
    properties = {
        **reference("network", "Name or id of the network; required.", constraint="neutron.network"),
        "subnetpool": text(
            "Name or id of the pool from which the subnet gets its addresses.",
            key="subnetpool_id",
            constraint="neutron.subnetpool",
        ),
        "prefixlen": integer("Length of the prefix from the pool.", minimum=0),
        "cidr": text("The addresses."),
        "name": NAME,
        "gateway_ip": text("Address of the gateway; an empty text for none.", update_allowed=True),
        "dns_nameservers": texts("Addresses of name servers.", default=[], update_allowed=True),
        "ip_version": integer("Version of IP.", default=4, allowed=(4, 6)),
        "enable_dhcp": flag("Whether the network serves DHCP.", default=True, update_allowed=True),
        "allocation_pools": maps("Ranges of addresses for ports.", _range("start", "end"), update_allowed=True),
        "tenant_id": TENANT_ID,
        "host_routes": maps("Routes for servers.", _range("destination", "nexthop"), update_allowed=True),
        "ipv6_ra_mode": text("Mode of router advertisements.", allowed=_IPV6_MODES),
        "ipv6_address_mode": text("Mode of address assignment.", allowed=_IPV6_MODES),
        "segment": text("Name or id of the segment.", key="segment_id", update_allowed=True),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        **shown(properties, "allocation_pools", "cidr", "dns_nameservers", "enable_dhcp"),
        **shown(properties, "gateway_ip", "host_routes", "ip_version", "name"),
        "network_id": "Id of the network.",
        "tenant_id": "Project.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = super().specify(context, resource, properties)
        if specified.get("gateway_ip") == "":
            specified["gateway_ip"] = None  # as in Heat, an empty text means that the subnet has no gateway
        # As in Heat, an update that no longer has these properties empties them.
        for name, empty in (("gateway_ip", None), ("allocation_pools", [])):
            if properties[name] is None and was_specified(context, resource, name):
                specified[name] = empty
        return specified

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        require(properties, "network")
        cidr, pool, prefix = (properties[name] for name in ("cidr", "subnetpool", "prefixlen"))
        if cidr is None and pool is None and prefix is None:
            raise StackValidationFailed("Either of the following properties must be specified: cidr, subnetpool.")
        refuse_several({"cidr": cidr, "subnetpool": pool})
        refuse_several({"cidr": cidr, "prefixlen": prefix})
        modes = [properties[name] for name in ("ipv6_ra_mode", "ipv6_address_mode")]
        if properties["ip_version"] == 4 and any(mode is not None for mode in modes):
            raise StackValidationFailed("ipv6_ra_mode and ipv6_address_mode are not supported for ipv4.")
        if is_known(*modes) and all(modes) and modes[0] != modes[1]:
            raise StackValidationFailed("When both ipv6_ra_mode and ipv6_address_mode are set, they must be equal.")
