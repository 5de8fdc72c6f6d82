"""OS::Cinder::VolumeAttachment: the connection of a volume to a server."""

from __future__ import annotations

from typing import Any

from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker_openstack.model import CloudKind
from stoker_openstack.types.cloud_base import CloudType
from stoker_openstack.types.cloud_properties import body, text


class CinderVolumeAttachment(CloudType):
    name = "OS::Cinder::VolumeAttachment"
    description = "The connection of a volume to a server."
    kind = CloudKind.VOLUME_ATTACHMENT
    properties = {
        "instance_uuid": text("Id of the server.", constraint="nova.server", required=True, update_allowed=True),
        "volume_id": text("Id of the volume.", constraint="cinder.volume", required=True, update_allowed=True),
        "mountpoint": text("Name of the device on the server, such as /dev/vdb.", update_allowed=True),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        members = body(properties, instance_uuid="server_id", volume_id="volume_id")
        return {**members, "device": properties["mountpoint"]} if properties["mountpoint"] else members
