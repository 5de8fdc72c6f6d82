"""OS::Neutron::Net: a network."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import flag, text, texts
from stoker_openstack.types.neutron_base import (
    ADMIN_STATE_UP,
    NAME,
    PORT_SECURITY,
    QOS_POLICY,
    TAGS,
    TENANT_ID,
    VALUE_SPECS,
    named,
)


class NeutronNet(CloudType):
    name = "OS::Neutron::Net"
    description = "A network."
    kind = CloudKind.NETWORK
    id_constraint = "neutron.network"
    properties = {
        "name": NAME,
        "admin_state_up": ADMIN_STATE_UP,
        "shared": flag("Whether other projects may use the network.", default=False, update_allowed=True),
        "tenant_id": TENANT_ID,
        "dhcp_agent_ids": texts("Agents that serve DHCP, for administrators only.", update_allowed=True),
        "port_security_enabled": PORT_SECURITY,
        "qos_policy": QOS_POLICY,
        "dns_domain": text("DNS domain of the network's ports.", update_allowed=True),
        "availability_zone_hints": texts("Availability zones of the network."),
        "tags": TAGS,
        "value_specs": VALUE_SPECS,
    }
    attributes = {
        "admin_state_up": "Whether the network is in use.",
        "l2_adjacency": "Whether all ports of the network share one segment.",
        "mtu": "Maximum transmission unit.",
        "name": "Name.",
        "port_security_enabled": "Whether security groups apply.",
        "qos_policy_id": "Id of the QoS policy.",
        "segments": "Segments of the network.",
        "status": "Status.",
        "subnets": "Ids of the subnets.",
        "tenant_id": "Project.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return named(
            context,
            resource,
            properties,
            admin_state_up="admin_state_up",
            shared="shared",
            tenant_id="tenant_id",
            qos_policy="qos_policy_id",
            port_security_enabled="port_security_enabled",
            dns_domain="dns_domain",
            availability_zone_hints="availability_zone_hints",
            dhcp_agent_ids="stoker:dhcp_agent_ids",
        )
