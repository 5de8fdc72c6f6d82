"""OS::Neutron::Port: a connection to a network, with addresses and security groups."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, TakesBack
from stoker_openstack.model import CloudKind
from stoker_openstack.store import cloud_objects
from stoker_openstack.types.cloud_base import CloudType, find_cloud, observe
from stoker_openstack.types.cloud_properties import (
    ADMIN_STATE_UP,
    NAME,
    PORT_SECURITY,
    QOS_POLICY,
    TAGS,
    VALUE_SPECS,
    flag,
    maps,
    reference,
    refuse_several,
    require,
    shown,
    text,
    texts,
)

#: Keys of a resource's data: the resources whose ports lose their addresses to this one, the latest last; the addresses
#: that this one lost to its replacement.
_OTHERS, _ADDRESSES = "takes_over_from", "fixed_ips"
_VNIC_TYPES = ("normal", "direct", "macvtap", "direct-physical", "baremetal", "virtio-forwarder", "smart-nic")


def adjust_port(specified: dict[str, Any], properties: Properties) -> dict[str, Any]:
    """Give the members of a port the form that Neutron uses; ``specified`` is changed and returned."""
    if isinstance(specified.get("mac_address"), str):  # Neutron shows addresses in this form
        specified["mac_address"] = specified["mac_address"].lower().replace("-", ":")
    if specified.get("binding:vnic_type") == "normal":
        del specified["binding:vnic_type"]
    if properties.get("no_fixed_ips"):
        specified["fixed_ips"] = []
    return specified


def _representation(context: Context, id: str | None) -> Any:
    """Return the object as Neutron represents it; only the id if no resource of this site has the object."""
    if id is None:
        return None
    stored = cloud_objects.find_external(context.tx, context.project_id, id)
    return dict(stored.observed) if stored is not None else {"id": id}


EXTRA_PROPERTIES = {
    "admin_state_up": ADMIN_STATE_UP,
    "allowed_address_pairs": maps(
        "Further addresses that the port may send from.",
        {
            "ip_address": text("Address or CIDR.", required=True),
            "mac_address": text("MAC address; by default the port's."),
        },
        update_allowed=True,
    ),
    "mac_address": text("MAC address."),
    "port_security_enabled": PORT_SECURITY,
    "qos_policy": QOS_POLICY,
    "binding:vnic_type": text(
        "Type of the network interface.", default="normal", allowed=_VNIC_TYPES, update_allowed=True
    ),
    "no_fixed_ips": flag("Whether the port has no address.", key=None, default=False, update_allowed=True),
    "propagate_uplink_status": flag("Whether the port follows the status of the uplink.", update_allowed=True),
    "value_specs": VALUE_SPECS,
}


class NeutronPort(TakesBack, CloudType):
    name = "OS::Neutron::Port"
    description = "A connection to a network."
    kind = CloudKind.PORT
    properties = {
        "name": NAME,
        **reference("network", "Name or id of the network; required.", constraint="neutron.network"),
        "device_id": text("Id of the server or router.", default="", update_allowed=True),
        "device_owner": text("Owner of the device.", default="", update_allowed=True),
        "fixed_ips": maps(
            "Addresses of the port; by default one of the network.",
            {
                **reference("subnet", "Name or id of the subnet.", constraint="neutron.subnet"),
                "ip_address": text("The address."),
            },
            update_allowed=True,
        ),
        "security_groups": texts("Names or ids of security groups; by default the project's.", update_allowed=True),
        "dns_name": text("DNS name of the port.", update_allowed=True),
        "replacement_policy": text(
            "Without effect, as in Heat.",
            key=None,
            default="AUTO",
            allowed=("REPLACE_ALWAYS", "AUTO"),
            update_allowed=True,
        ),
        "tags": TAGS,
        **EXTRA_PROPERTIES,
    }
    attributes = {
        **shown(properties, "admin_state_up", "allowed_address_pairs", "device_id", "device_owner", "mac_address"),
        **shown(properties, "name", "port_security_enabled", "propagate_uplink_status"),
        "dns_assignment": "DNS names of the port.",
        "fixed_ips": "Addresses, each with its subnet.",
        "network_id": "Id of the network.",
        "qos_policy_id": "Id of the QoS policy.",
        "security_groups": "Ids of the security groups.",
        "status": "Status.",
        "tenant_id": "Project.",
        "network": "The network, as Neutron represents it.",
        "subnets": "The subnets of the addresses, as Neutron represents them.",
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return adjust_port(super().specify(context, resource, properties), properties)

    def _specify_taking_addresses(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = self.specify(context, resource, properties)
        if others := [id for id in resource.data.get(_OTHERS, ()) if id != resource.id]:
            specified["stoker:takes_over_from"] = others
        is_same = resource.properties.get("fixed_ips") == properties["fixed_ips"] and not properties["no_fixed_ips"]
        if is_same and resource.data.get(_ADDRESSES):
            specified["fixed_ips"] = list(resource.data[_ADDRESSES])
        return specified

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
        return port.get(name)

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        require(properties, "network")
        refuse_several({name: properties[name] or None for name in ("fixed_ips", "no_fixed_ips")})
