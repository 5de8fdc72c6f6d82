"""OS::Neutron::Port: a connection to a network, with addresses and security groups."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, TakesBack
from stoker.resources.properties import Property
from stoker_openstack.interface import find_cloud
from stoker_openstack.model import CloudKind
from stoker_openstack.store import cloud_objects
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import body, flag, text, texts
from stoker_openstack.types.neutron_base import (
    ADDRESS_PAIRS,
    ADMIN_STATE_UP,
    NAME,
    PORT_SECURITY,
    QOS_POLICY,
    TAGS,
    VALUE_SPECS,
    VNIC_TYPES,
    named,
)
from stoker_openstack.types.neutron_subnet import require_network

#: Keys of a resource's data: the resources whose ports lose their addresses to this one, the latest last; the addresses
#: that this one lost to its replacement.
_OTHERS, _ADDRESSES = "takes_over_from", "fixed_ips"
#: Attributes that combine several objects.
_COMPOSED = {
    "network": "The network, as Neutron represents it.",
    "subnets": "The subnets of the addresses, as Neutron represents them.",
}
_ATTRIBUTES = {
    "admin_state_up": "Whether the port is in use.",
    "allowed_address_pairs": "Further addresses that the port may send from.",
    "device_id": "Id of the server or router.",
    "device_owner": "Owner of the device.",
    "dns_assignment": "DNS names of the port.",
    "fixed_ips": "Addresses, each with its subnet.",
    "mac_address": "MAC address.",
    "name": "Name.",
    "network_id": "Id of the network.",
    "port_security_enabled": "Whether security groups apply.",
    "propagate_uplink_status": "Whether the port follows the status of the uplink.",
    "qos_policy_id": "Id of the QoS policy.",
    "security_groups": "Ids of the security groups.",
    "status": "Status.",
    "tenant_id": "Project.",
}


def extra_members(properties: Properties) -> dict[str, Any]:
    """Return the members that a port of its own and the port of a server's network have in common."""
    members = body(
        properties,
        admin_state_up="admin_state_up",
        mac_address="mac_address",
        allowed_address_pairs="allowed_address_pairs",
        port_security_enabled="port_security_enabled",
        qos_policy="qos_policy_id",
        propagate_uplink_status="propagate_uplink_status",
    )
    if isinstance(members.get("mac_address"), str):  # Neutron shows addresses in this form
        members["mac_address"] = members["mac_address"].lower().replace("-", ":")
    if properties.get("allowed_address_pairs") is not None:
        members["allowed_address_pairs"] = [
            {name: value for name, value in pair.items() if value is not None}
            for pair in properties["allowed_address_pairs"]
        ]
    if properties.get("binding:vnic_type") not in (None, "normal"):
        members["binding:vnic_type"] = properties["binding:vnic_type"]
    if properties.get("no_fixed_ips"):
        members["fixed_ips"] = []
    return members


def _fixed_ip(entry: Properties) -> dict[str, Any]:
    return body(entry, subnet_id="subnet_id", subnet="subnet_id", ip_address="ip_address")


def _representation(context: Context, id: str | None) -> Any:
    """Return the object as Neutron represents it; only the id if no resource of this site has the object."""
    if id is None:
        return None
    stored = cloud_objects.find_external(context.tx, context.project_id, id)
    return dict(stored.observed) if stored is not None else {"id": id}


EXTRA_PROPERTIES = {
    "admin_state_up": ADMIN_STATE_UP,
    "allowed_address_pairs": ADDRESS_PAIRS,
    "mac_address": text("MAC address."),
    "port_security_enabled": PORT_SECURITY,
    "qos_policy": QOS_POLICY,
    "binding:vnic_type": text(
        "Type of the network interface.", default="normal", allowed=VNIC_TYPES, update_allowed=True
    ),
    "no_fixed_ips": flag("Whether the port has no address.", default=False, update_allowed=True),
    "propagate_uplink_status": flag("Whether the port follows the status of the uplink.", update_allowed=True),
    "value_specs": VALUE_SPECS,
}


class NeutronPort(TakesBack, CloudType):
    name = "OS::Neutron::Port"
    description = "A connection to a network."
    kind = CloudKind.PORT
    id_constraint = "neutron.port"
    properties = {
        "name": NAME,
        "network": text("Name or id of the network; required.", constraint="neutron.network"),
        "network_id": text("The same; deprecated.", constraint="neutron.network"),
        "device_id": text("Id of the server or router.", default="", update_allowed=True),
        "device_owner": text("Owner of the device.", default="", update_allowed=True),
        "fixed_ips": Property(
            kind="list",
            update_allowed=True,
            each=Property(
                kind="map",
                schema={
                    "subnet": text("Name or id of the subnet.", constraint="neutron.subnet"),
                    "subnet_id": text("The same; deprecated.", constraint="neutron.subnet"),
                    "ip_address": text("The address."),
                },
            ),
            description="Addresses of the port; by default one of the network.",
        ),
        "security_groups": texts("Names or ids of security groups; by default the project's.", update_allowed=True),
        "dns_name": text("DNS name of the port.", update_allowed=True),
        "replacement_policy": text(
            "Without effect, as in Heat.", default="AUTO", allowed=("REPLACE_ALWAYS", "AUTO"), update_allowed=True
        ),
        "tags": TAGS,
        **EXTRA_PROPERTIES,
    }
    attributes = {**_ATTRIBUTES, **_COMPOSED}

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = named(
            context,
            resource,
            properties,
            network_id="network_id",
            network="network_id",
            device_id="device_id",
            device_owner="device_owner",
            security_groups="security_groups",
            dns_name="dns_name",
        )
        if properties["fixed_ips"] is not None:
            members["fixed_ips"] = [_fixed_ip(entry) for entry in properties["fixed_ips"]]
        return {**members, **extra_members(properties)}

    def _specify_taking_addresses(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = self.specify(context, resource, properties)
        if others := [id for id in resource.data.get(_OTHERS, ()) if id != resource.id]:
            members["stoker:takes_over_from"] = others
        is_same = resource.properties.get("fixed_ips") == properties["fixed_ips"] and not properties["no_fixed_ips"]
        if is_same and resource.data.get(_ADDRESSES):
            members["fixed_ips"] = list(resource.data[_ADDRESSES])
        return members

    def create(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Create the port. Raises Replace if an earlier attempt has created a broken one."""
        self.refuse_broken(context, resource)
        return self.ensure(context, resource, self._specify_taking_addresses(context, resource, properties))

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the port, which no longer needs to know the addresses that it once lost."""
        outcome = super().update(context, resource, properties)
        return replace(outcome, data={key: value for key, value in resource.data.items() if key != _ADDRESSES})

    def prepare_replacement(self, context: Context, resource: Resource) -> tuple[dict[str, Any], dict[str, Any]]:
        """Let the port's replacement take its addresses, as Heat does; the port remembers them for a rollback."""
        cloud = find_cloud(context)
        others = [id for id in resource.data.get(_OTHERS, ()) if cloud is not None and cloud.find(context.tx, id)]
        fixed_ips = [dict(address) for address in observe(context, resource).get("fixed_ips") or ()]
        kept = {**resource.data, _ADDRESSES: fixed_ips} if fixed_ips else dict(resource.data)
        return kept, {_OTHERS: [*others, resource.id]}

    def restore(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take the addresses back from the port that was to replace this one. A retry after a failure is ``create``."""
        return self.ensure(context, resource, self._specify_taking_addresses(context, resource, properties))

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        port = observe(context, resource)
        if name == "network":
            return _representation(context, port.get("network_id"))
        if name == "subnets":
            return [_representation(context, fixed_ip.get("subnet_id")) for fixed_ip in port.get("fixed_ips") or ()]
        if name not in _ATTRIBUTES:
            raise NoSuchAttribute(name)
        return port.get(name)

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        require_network(properties)
        if properties["no_fixed_ips"] is True and properties["fixed_ips"]:
            raise StackValidationFailed(
                "Cannot define the following properties at the same time: fixed_ips, no_fixed_ips."
            )
