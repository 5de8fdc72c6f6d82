"""
The types of EC2 that templates for software configuration use, mapped onto the kinds of objects of the cloud.

Each has Heat's properties and attributes, and the translation to a specification (``model``).

AWS::EC2::Instance is a server with the properties of EC2: all methods are those of OS::Nova::Server, which see the
translated properties. As in Heat, the user data is that of ``HEAT_CFNTOOLS``, so that the cfn tools find the resource's
metadata (AWS::CloudFormation::Init).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties, physical_name
from stoker.resources.properties import Property
from stoker.types.user_data import HEAT_CFNTOOLS
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import flag, integer, is_known, mapping, maps, members, text, texts
from stoker_openstack.types.nova_server import NovaServer
from stoker_openstack.types.nova_server_schema import PROPERTIES as SERVER_PROPERTIES

#: Protocols and ports of EC2 that stand for all.
_ALL = ("-1", "all")


def _tags_of(properties: Properties) -> dict[str, str]:
    """Return the tags as metadata."""
    return {str(tag["Key"]): str(tag["Value"]) for tag in properties.get("Tags") or ()}


#: The schema of a name with its value.
_PAIR = {"Key": text("Name.", required=True), "Value": text("Value.", required=True)}
_TAGS = maps("Tags, stored as metadata.", _PAIR, key=None)
_RULE = {
    "CidrIp": text("Addresses of the other end, as CIDR.", key="remote_ip_prefix"),
    "FromPort": text("Lowest port, or type of ICMP.", key="port_range_min"),
    "ToPort": text("Highest port, or code of ICMP.", key="port_range_max"),
    "IpProtocol": text("Name or number of the protocol; -1 means all.", key="protocol"),
    "SourceSecurityGroupId": text("Security group of the other end.", key="remote_group_id"),
    "SourceSecurityGroupName": text("The same, by name.", key="remote_group_id"),
    "SourceSecurityGroupOwnerId": text("Not implemented.", key=None),
}
_RULES = maps("Rules of permitted traffic.", _RULE, default=[], update_allowed=True)


def _rule(direction: str, rule: Properties) -> dict[str, Any]:
    specified = {key: value for key, value in members(_RULE, rule).items() if value not in _ALL}
    for key in ("port_range_min", "port_range_max"):
        if key in specified:
            specified[key] = int(specified[key])
    return {"direction": direction, "ethertype": "IPv4", **specified}


def _not_implemented(*names: str) -> Mapping[str, Property]:
    """Return the schemas of properties that Heat ignores, too."""
    return {name: text("Without effect, as in Heat.", key=None) for name in names}


class SecurityGroup(CloudType):
    name = "AWS::EC2::SecurityGroup"
    description = "Rules for the traffic of instances."
    kind = CloudKind.SECURITY_GROUP
    properties = {
        "GroupDescription": text("What the group is for.", required=True),
        "SecurityGroupIngress": _RULES,
        "SecurityGroupEgress": _RULES,
        **_not_implemented("VpcId"),
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
    properties = {
        "AvailabilityZone": text("Availability zone.", key="availability_zone"),
        "Size": integer("Size in GiB.", key="size", minimum=1),
        "SnapshotId": text(
            "Id of the snapshot from which the volume is created.", key="snapshot_id", constraint="cinder.snapshot"
        ),
        "Tags": _TAGS,
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        specified = super().specify(context, resource, properties)
        return {"name": physical_name(context, resource), **specified, "metadata": _tags_of(properties)}

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
    properties = {
        **_not_implemented("Domain"),
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
        "EIP": text("The address.", key="floatingip_id"),
        "AllocationId": text("Id of the floating IP, in place of the address.", key="floatingip_id"),
        "NetworkInterfaceId": text(
            "Id of the port, in place of the instance.", key="port_id", constraint="neutron.port"
        ),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        # As in the validation, an empty text means that the property is not set.
        return super().specify(context, resource, {name: value or None for name, value in properties.items()})

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless one address and one target are set."""
        for first, second in (("EIP", "AllocationId"), ("InstanceId", "NetworkInterfaceId")):
            values = (properties[first], properties[second])
            if is_known(*values) and bool(values[0]) == bool(values[1]):
                raise StackValidationFailed(f"AWS::EC2::EIPAssociation needs either {first} or {second}.")


#: Properties with the same meaning, and their names in OS::Nova::Server.
_RENAMED = {
    "ImageId": "image",
    "InstanceType": "flavor",
    "KeyName": "key_name",
    "AvailabilityZone": "availability_zone",
    "UserData": "user_data",
}
_DEFAULTS = {name: schema.default for name, schema in SERVER_PROPERTIES.items()}


def translate(properties: Properties) -> dict[str, Any]:
    """Return the properties of OS::Nova::Server."""
    renamed = {own: properties[name] for name, own in _RENAMED.items() if properties.get(name) is not None}
    hints = {str(hint["Key"]): hint["Value"] for hint in properties.get("NovaSchedulerHints") or ()}
    groups = [*(properties.get("SecurityGroups") or ()), *(properties.get("SecurityGroupIds") or ())]
    return {
        **_DEFAULTS,
        **renamed,
        "user_data_format": HEAT_CFNTOOLS,
        "security_groups": groups,
        "metadata": _tags_of(properties),
        "networks": _networks(properties),
        "block_device_mapping_v2": _devices(properties),
        **({"scheduler_hints": hints} if hints else {}),
    }


def _networks(properties: Properties) -> list[dict[str, Any]] | None:
    if properties.get("NetworkInterfaces"):
        interfaces = properties["NetworkInterfaces"]
        ports = [item["NetworkInterfaceId"] if isinstance(item, Mapping) else item for item in interfaces]
        return [{"port": port} for port in ports]
    if properties.get("SubnetId"):
        address = properties.get("PrivateIpAddress")
        return [{"subnet": properties["SubnetId"], "fixed_ip": address}]
    return None


def _devices(properties: Properties) -> list[dict[str, Any]] | None:
    devices = []
    for device in properties.get("BlockDeviceMappings") or ():
        disk = device["Ebs"] or {}
        devices.append(
            {
                "device_name": device["DeviceName"],
                "snapshot_id": disk.get("SnapshotId"),
                "volume_size": disk.get("VolumeSize"),
                "delete_on_termination": disk.get("DeleteOnTermination"),
            }
        )
    for volume in properties.get("Volumes") or ():
        devices.append({"device_name": volume["Device"], "volume_id": volume["VolumeId"]})
    return devices or None


def _server_of(resource: Resource) -> Resource:
    return replace(resource, type=NovaServer.name, properties=translate(resource.properties))


def _translated(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of OS::Nova::Server that gets the resource and its properties translated."""

    def call(self: Instance, context: Context, resource: Resource, *rest: Any) -> Any:
        values = [translate(value) if isinstance(value, Mapping) else value for value in rest]
        return method(self, context, _server_of(resource), *values)

    return call


_EBS = {
    "DeleteOnTermination": flag("Whether the volume is deleted with the instance.", default=True),
    "SnapshotId": text("Id of the snapshot.", constraint="cinder.snapshot"),
    "VolumeSize": text("Size in GiB."),
    **_not_implemented("VolumeType", "Iops"),
}
_PROPERTIES: Mapping[str, Property] = {
    "ImageId": text("Name or id of the image.", constraint="glance.image", required=True),
    "InstanceType": text("Name or id of the flavor.", constraint="nova.flavor", required=True, update_allowed=True),
    "KeyName": text("Name of the key pair.", constraint="nova.keypair"),
    "AvailabilityZone": text("Availability zone."),
    "SecurityGroups": texts("Names or ids of security groups."),
    "SecurityGroupIds": texts("Ids of security groups."),
    "NetworkInterfaces": Property(
        kind="list", default=[], update_allowed=True, description="Ids of ports, or maps with NetworkInterfaceId."
    ),
    "SubnetId": text("Id of the subnet.", update_allowed=True),
    "PrivateIpAddress": text("Address in the subnet."),
    "Tags": replace(_TAGS, update_allowed=True),
    "NovaSchedulerHints": maps("Names and values for Nova's scheduler.", _PAIR),
    "UserData": text("Data for the boot."),
    "Volumes": maps(
        "Volumes to attach.",
        {"Device": text("Name of the device.", required=True), "VolumeId": text("Id of the volume.", required=True)},
    ),
    "BlockDeviceMappings": maps(
        "Volumes that are created with the instance.",
        {
            "DeviceName": text("Name of the device.", required=True),
            "NoDevice": mapping("Without effect, as in Heat."),
            "VirtualName": text("Without effect, as in Heat."),
            "Ebs": mapping("The volume.", schema=_EBS),
        },
    ),
    **_not_implemented(
        "DisableApiTermination",
        "KernelId",
        "Monitoring",
        "PlacementGroupName",
        "RamDiskId",
        "SourceDestCheck",
        "Tenancy",
    ),
}


class Instance(NovaServer):
    name = "AWS::EC2::Instance"
    description = "A server of the cloud, with the properties of EC2."
    properties = _PROPERTIES
    attributes = {
        "AvailabilityZone": "Availability zone.",
        "PrivateDnsName": "The same as PrivateIp.",
        "PublicDnsName": "The same as PublicIp.",
        "PrivateIp": "The first address.",
        "PublicIp": "The first address.",
    }

    create = _translated(NovaServer.create)
    update = _translated(NovaServer.update)
    adopt = _translated(NovaServer.adopt)
    delete = _translated(NovaServer.delete)
    act = _translated(NovaServer.act)
    check = _translated(NovaServer.check)
    retain = _translated(NovaServer.retain)
    refer = _translated(NovaServer.refer)
    live_metadata = _translated(NovaServer.live_metadata)
    reached_by = _translated(NovaServer.reached_by)

    def restored(self, saved: Mapping[str, Any]) -> Properties:
        return {"ImageId": saved["snapshot_image_id"]}

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name == "AvailabilityZone":
            return self.show(context, resource).get("OS-EXT-AZ:availability_zone")
        return super().attribute(context, _server_of(resource), "first_address")

    def validate(self, properties: Properties) -> None:
        """Accept all values of the schema: those of OS::Nova::Server are made from them."""
