"""
The types of EC2 that templates for software configuration use, mapped onto the kinds of objects of the cloud.

Each has Heat's properties and attributes, and the translation to a specification (``model``). AWS::EC2::Instance is a
server with other properties; see ``ec2_instance``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, physical_name
from stoker.resources.properties import Property
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import integer, is_known, maps, text

#: Protocols and ports of EC2 that stand for all.
_ALL = ("-1", "all")


def tags_of(properties: Properties) -> dict[str, str]:
    """Return the tags as metadata."""
    return {str(tag["Key"]): str(tag["Value"]) for tag in properties.get("Tags") or ()}


#: The schema of a name with its value.
PAIR = {"Key": text("Name.", required=True), "Value": text("Value.", required=True)}
TAGS = maps("Tags, stored as metadata.", PAIR, key=None)
_RULES = maps(
    "Rules of permitted traffic.",
    {
        "CidrIp": text("Addresses of the other end, as CIDR."),
        "FromPort": text("Lowest port, or type of ICMP."),
        "ToPort": text("Highest port, or code of ICMP."),
        "IpProtocol": text("Name or number of the protocol; -1 means all."),
        "SourceSecurityGroupId": text("Security group of the other end."),
        "SourceSecurityGroupName": text("The same, by name."),
        "SourceSecurityGroupOwnerId": text("Not implemented."),
    },
    default=[],
    update_allowed=True,
)


def _rule(direction: str, rule: Properties) -> dict[str, Any]:
    group = rule["SourceSecurityGroupId"] or rule["SourceSecurityGroupName"]
    members = {
        "direction": direction,
        "ethertype": "IPv4",
        "protocol": None if rule["IpProtocol"] in _ALL else rule["IpProtocol"],
        "port_range_min": _port(rule["FromPort"]),
        "port_range_max": _port(rule["ToPort"]),
        "remote_ip_prefix": rule["CidrIp"],
        "remote_group_id": group,
    }
    return {name: value for name, value in members.items() if value is not None}


def _port(value: str | None) -> int | None:
    return None if value is None or value in _ALL else int(value)


def not_implemented(*names: str) -> Mapping[str, Property]:
    """Return the schemas of properties that Heat ignores, too."""
    return {name: text("Without effect, as in Heat.", key=None) for name in names}


class SecurityGroup(CloudType):
    name = "AWS::EC2::SecurityGroup"
    description = "Rules for the traffic of instances."
    kind = CloudKind.SECURITY_GROUP
    id_constraint = "neutron.security_group"
    properties = {
        "GroupDescription": text("What the group is for.", required=True),
        "SecurityGroupIngress": _RULES,
        "SecurityGroupEgress": _RULES,
        **not_implemented("VpcId"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        rules = [
            *(_rule("ingress", rule) for rule in properties["SecurityGroupIngress"]),
            *(_rule("egress", rule) for rule in properties["SecurityGroupEgress"]),
        ]
        name, description = physical_name(context, resource), properties["GroupDescription"]
        return {"name": name, "description": description, "stoker:rules": rules}

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a port that is no number."""
        for name in ("SecurityGroupIngress", "SecurityGroupEgress"):
            rules = properties[name]
            for rule in rules if isinstance(rules, list) else ():
                for key in ("FromPort", "ToPort"):
                    value = UNKNOWN if rule is UNKNOWN else rule[key]
                    if value not in (None, UNKNOWN) and not str(value).removeprefix("-").isdecimal():
                        raise StackValidationFailed(f"{name}: {key} must be a number, not {value!r}.")


class Volume(CloudType):
    name = "AWS::EC2::Volume"
    description = "A block device that outlives instances."
    kind = CloudKind.VOLUME
    id_constraint = "cinder.volume"
    properties = {
        "AvailabilityZone": text("Availability zone.", key="availability_zone"),
        "Size": integer("Size in GiB.", key="size", minimum=1),
        "SnapshotId": text(
            "Id of the snapshot from which the volume is created.", key="snapshot_id", constraint="cinder.snapshot"
        ),
        "Tags": TAGS,
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = super().specify(context, resource, properties)
        return {"name": physical_name(context, resource), **specified, "metadata": tags_of(properties)}

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless the size or a snapshot is set."""
        if properties["Size"] is None and properties["SnapshotId"] is None:
            raise StackValidationFailed("AWS::EC2::Volume needs Size or SnapshotId.")


class VolumeAttachment(CloudType):
    name = "AWS::EC2::VolumeAttachment"
    description = "The connection of a volume to an instance."
    kind = CloudKind.VOLUME_ATTACHMENT
    properties = {
        "InstanceId": text("Id of the instance.", key="server_id", constraint="nova.server", required=True),
        "VolumeId": text("Id of the volume.", key="volume_id", constraint="cinder.volume", required=True),
        "Device": text("Name of the device on the instance, such as /dev/vdb.", key="device", required=True),
    }


class Address(CloudType):
    name = "AWS::EC2::EIP"
    description = "An address of the cloud's external network."
    kind = CloudKind.FLOATING_IP
    id_constraint = "neutron.floatingip"
    properties = {
        **not_implemented("Domain"),
        "InstanceId": text(
            "Id of the instance to which the address leads.", key="stoker:server_id", constraint="nova.server"
        ),
    }
    attributes = {"AllocationId": "Id of the floating IP."}

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {"stoker:external_network": True, **super().specify(context, resource, properties)}

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        return resource.physical_id

    def reference(self, context: Context, resource: Resource) -> Any:
        return observe(context, resource).get("floating_ip_address") or resource.physical_id or resource.name


class AddressAssociation(CloudType):
    name = "AWS::EC2::EIPAssociation"
    description = "The connection of an address to an instance."
    kind = CloudKind.FLOATING_IP_ASSOCIATION
    properties = {
        "InstanceId": text("Id of the instance.", key="stoker:server_id", constraint="nova.server"),
        "EIP": text("The address.", key="stoker:address"),
        "AllocationId": text("Id of the floating IP, in place of the address.", key="floatingip_id"),
        "NetworkInterfaceId": text(
            "Id of the port, in place of the instance.", key="port_id", constraint="neutron.port"
        ),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless one address and one target are set."""
        for first, second in (("EIP", "AllocationId"), ("InstanceId", "NetworkInterfaceId")):
            values = (properties[first], properties[second])
            if is_known(*values) and bool(values[0]) == bool(values[1]):
                raise StackValidationFailed(f"AWS::EC2::EIPAssociation needs either {first} or {second}.")
