"""
AWS::EC2::Instance: a server of the cloud with the properties of EC2.

All methods are those of OS::Nova::Server, which see the translated properties. As in Heat, the user data is that of
``HEAT_CFNTOOLS``, so that the cfn tools find the resource's metadata (AWS::CloudFormation::Init).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker.types.user_data import HEAT_CFNTOOLS
from stoker_openstack.types.cloud_properties import flag, mapping, maps, text, texts
from stoker_openstack.types.ec2_types import PAIR, TAGS, not_implemented, tags_of
from stoker_openstack.types.nova_server import NovaServer
from stoker_openstack.types.nova_server_schema import PROPERTIES as SERVER_PROPERTIES

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
        "metadata": tags_of(properties),
        "networks": _networks(properties),
        "block_device_mapping_v2": _devices(properties),
        **({"scheduler_hints": hints} if hints else {}),
    }


def _networks(properties: Properties) -> list[dict[str, Any]] | None:
    if properties.get("NetworkInterfaces"):
        interfaces = properties["NetworkInterfaces"]
        ports = [item["NetworkInterfaceId"] if isinstance(item, Mapping) else item for item in interfaces]
        return [{**_EMPTY_NETWORK, "port": port} for port in ports]
    if properties.get("SubnetId"):
        address = properties.get("PrivateIpAddress")
        return [{**_EMPTY_NETWORK, "subnet": properties["SubnetId"], "fixed_ip": address}]
    return None


def _devices(properties: Properties) -> list[dict[str, Any]] | None:
    devices = []
    for device in properties.get("BlockDeviceMappings") or ():
        disk = device["Ebs"] or {}
        devices.append(
            {
                **_EMPTY_DEVICE,
                "device_name": device["DeviceName"],
                "snapshot_id": disk.get("SnapshotId"),
                "volume_size": disk.get("VolumeSize"),
                "delete_on_termination": disk.get("DeleteOnTermination"),
            }
        )
    for volume in properties.get("Volumes") or ():
        devices.append({**_EMPTY_DEVICE, "device_name": volume["Device"], "volume_id": volume["VolumeId"]})
    return devices or None


def _empty(name: str) -> dict[str, Any]:
    """Return an entry of a list property of OS::Nova::Server with all members at their defaults."""
    each = SERVER_PROPERTIES[name].each
    assert each is not None
    return {key: schema.default for key, schema in (each.schema or {}).items()}


_EMPTY_NETWORK, _EMPTY_DEVICE = _empty("networks"), _empty("block_device_mapping_v2")


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
    **not_implemented("VolumeType", "Iops"),
}
PROPERTIES: Mapping[str, Property] = {
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
    "Tags": replace(TAGS, update_allowed=True),
    "NovaSchedulerHints": maps(
        "Names and values for Nova's scheduler.",
        PAIR,
    ),
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
    **not_implemented(
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
    properties = PROPERTIES
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
