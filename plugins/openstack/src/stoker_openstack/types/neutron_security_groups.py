"""OS::Neutron::SecurityGroup: rules for the traffic of ports; OS::Neutron::SecurityGroupRule: one rule of a group."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import flag, integer, maps, members, object_name, refuse_several, text

_PROTOCOLS = (
    "ah",
    "dccp",
    "egp",
    "esp",
    "gre",
    "icmp",
    "icmpv6",
    "igmp",
    "ipv6-encap",
    "ipv6-frag",
    "ipv6-icmp",
    "ipv6-nonxt",
    "ipv6-opts",
    "ipv6-route",
    "ospf",
    "pgm",
    "rsvp",
    "sctp",
    "tcp",
    "udp",
    "udplite",
    "vrrp",
    *map(str, range(256)),
)

#: The ``remote_group_id`` of a rule whose other end is the group itself; see ``model``.
_SELF = "_self"


def _port(what: str) -> Property:
    return integer(f"{what} port, or type and code of ICMP.", minimum=0, maximum=65535)


#: Properties of a rule, without those that name a remote group.
_RULE = {
    "direction": text("Direction of the traffic.", default="ingress", allowed=("ingress", "egress")),
    "ethertype": text("Version of IP.", default="IPv4", allowed=("IPv4", "IPv6")),
    "port_range_min": _port("Lowest"),
    "port_range_max": _port("Highest"),
    "remote_ip_prefix": text("Addresses of the other end, as CIDR."),
    "description": text("What the rule is for."),
}
_PROTOCOL = text("Name or number of the protocol; by default all.", allowed=_PROTOCOLS)


def _rule(rule: Properties) -> dict[str, Any]:
    specified = members({**_RULE, "protocol": _PROTOCOL}, rule)
    if rule["remote_mode"] == "remote_group_id":
        specified.pop("remote_ip_prefix", None)
        specified["remote_group_id"] = _SELF if rule["remote_group_id"] is None else rule["remote_group_id"]
    return specified


def _validate_rule(rule: Properties) -> None:
    """Raise StackValidationFailed if the range of ports is not one."""
    low, high = rule["port_range_min"], rule["port_range_max"]
    is_icmp = str(rule["protocol"]) in ("icmp", "icmpv6", "ipv6-icmp", "1", "58")
    if isinstance(low, int) and isinstance(high, int) and low > high and not is_icmp:
        raise StackValidationFailed(f"port_range_min {low} must not exceed port_range_max {high}.")


class NeutronSecurityGroup(CloudType):
    name = "OS::Neutron::SecurityGroup"
    description = "Rules for the traffic of ports."
    kind = CloudKind.SECURITY_GROUP
    properties = {
        "name": object_name(update_allowed=True),
        "description": text("What the group is for.", update_allowed=True),
        "stateful": flag("Whether answers to permitted traffic are permitted.", update_allowed=True),
        "rules": maps(
            "Rules of permitted traffic.",
            {
                **_RULE,
                "protocol": _PROTOCOL,
                "remote_mode": text(
                    "What the other end is.",
                    default="remote_ip_prefix",
                    allowed=("remote_ip_prefix", "remote_group_id"),
                ),
                "remote_group_id": text("Security group of the other end; by default the group itself."),
            },
            key=None,
            default=[],
            update_allowed=True,
        ),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = super().specify(context, resource, properties)
        return {**specified, "stoker:rules": [_rule(rule) for rule in properties["rules"]]}

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a reserved name and for rules that contradict themselves."""
        if properties["name"] == "default":
            raise StackValidationFailed('Security groups cannot be assigned the name "default".')
        for rule in properties["rules"] if isinstance(properties["rules"], list) else ():
            if rule is not UNKNOWN:
                _validate_rule(rule)


class NeutronSecurityGroupRule(CloudType):
    name = "OS::Neutron::SecurityGroupRule"
    description = "One rule of a security group."
    kind = CloudKind.SECURITY_GROUP_RULE
    properties = {
        "security_group": text(
            "Name or id of the security group.",
            key="security_group_id",
            constraint="neutron.security_group",
            required=True,
        ),
        **_RULE,
        "protocol": replace(_PROTOCOL, default="tcp"),
        "remote_group": text(
            "Name or id of the security group of the other end.",
            key="remote_group_id",
            constraint="neutron.security_group",
        ),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        refuse_several({name: properties[name] for name in ("remote_group", "remote_ip_prefix")})
        _validate_rule(properties)
