"""OS::Neutron::SecurityGroupRule: one rule of a security group."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import text
from stoker_openstack.types.neutron_security_group import PROTOCOL, RULE_PROPERTIES, rule_members, validate_rule


class NeutronSecurityGroupRule(CloudType):
    name = "OS::Neutron::SecurityGroupRule"
    description = "One rule of a security group."
    kind = CloudKind.SECURITY_GROUP_RULE
    properties = {
        "security_group": text("Name or id of the security group.", constraint="neutron.security_group", required=True),
        **RULE_PROPERTIES,
        "protocol": replace(PROTOCOL, default="tcp"),
        "remote_group": text("Name or id of the security group of the other end.", constraint="neutron.security_group"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = {**rule_members(properties), "security_group_id": properties["security_group"]}
        if properties["remote_group"] is not None:
            members["remote_group_id"] = properties["remote_group"]
        return members

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for properties that contradict each other."""
        group, prefix = properties["remote_group"], properties["remote_ip_prefix"]
        if group is not None and prefix is not None and UNKNOWN not in (group, prefix):
            raise StackValidationFailed(
                "Cannot define the following properties at the same time: remote_group, remote_ip_prefix."
            )
        validate_rule(properties)
