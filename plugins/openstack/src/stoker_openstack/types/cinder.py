"""Volumes, which outlive servers, their attachments to servers, and the types of volumes with their encryption."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Action, Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure
from stoker.resources.properties import Property
from stoker_openstack.model import CloudAction, CloudKind, own_metadata
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import (
    Member,
    flag,
    integer,
    mapping,
    object_name,
    reference,
    refuse_several,
    text,
)

#: Attributes with another name in Cinder's representation.
_RENAMED = {"display_name": "name", "display_description": "description"}
_SOURCES = ("image", "imageRef", "snapshot_id", "source_volid")


class CinderVolume(CloudType):
    name = "OS::Cinder::Volume"
    description = "A block device that outlives servers."
    kind = CloudKind.VOLUME
    properties = {
        "availability_zone": text("Availability zone."),
        "size": integer("Size in GiB; may grow.", minimum=1, update_allowed=True),
        "snapshot_id": text("Id of the snapshot with the volume's content.", constraint="cinder.snapshot"),
        "backup_id": text(
            "Id of the backup with the volume's content.",
            key="stoker:backup_id",
            constraint="cinder.backup",
            update_allowed=True,
        ),
        "name": object_name(update_allowed=True),
        "description": text("What the volume is for.", update_allowed=True),
        "volume_type": text("Name or id of the type.", constraint="cinder.vtype", update_allowed=True),
        "metadata": mapping("Names and values.", default={}, update_allowed=True),
        **reference(
            "image", "Name or id of the image with the volume's content.", "imageRef", constraint="glance.image"
        ),
        "source_volid": text("Name or id of the volume with the volume's content.", constraint="cinder.volume"),
        "scheduler_hints": mapping("Names and values for Cinder's scheduler.", key="stoker:scheduler_hints"),
        "read_only": flag("Whether the volume is read-only.", key="stoker:read_only", update_allowed=True),
        "multiattach": flag("Whether several servers can attach the volume; deprecated.", default=False),
    }
    attributes = {
        "attachments": "Attachments as JSON text; deprecated.",
        "attachments_list": "Attachments.",
        "availability_zone": "Availability zone.",
        "bootable": "Whether servers can boot from the volume.",
        "created_at": "Time of the creation.",
        "display_description": "Description.",
        "display_name": "Name.",
        "encrypted": "Whether the volume is encrypted.",
        "metadata": "Metadata as JSON text.",
        "metadata_values": "Metadata.",
        "multiattach": "Whether several servers can attach the volume.",
        "size": "Size in GiB.",
        "snapshot_id": "Id of the snapshot from which the volume was created.",
        "source_volid": "Id of the volume from which the volume was created.",
        "status": "Status.",
        "volume_type": "Type of the volume.",
    }
    actions = {Action.CHECK: CloudAction.CHECK, Action.SNAPSHOT: CloudAction.SNAPSHOT}

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the volume. Raises ResourceFailure for a smaller size."""
        before, after = resource.properties.get("size"), properties["size"]
        if before is not None and after is not None and after < before:
            raise ResourceFailure(f"Shrinking volume is not supported: size {after} is less than {before}.")
        return super().update(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        volume = observe(context, resource)
        if name == "attachments_list":
            return volume.get("attachments") or []
        if name in ("metadata", "metadata_values"):
            metadata = own_metadata(volume.get("metadata") or {})
            return json.dumps(metadata) if name == "metadata" else metadata
        if name == "attachments":
            return json.dumps(volume.get(name) or [])
        value = volume.get(_RENAMED.get(name, name))
        return None if value is None else str(value)  # as in Heat, numbers and booleans are text

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed unless size and source fit together."""
        refuse_several({name: properties[name] for name in _SOURCES})
        has_own_size = any(properties[name] is not None for name in ("snapshot_id", "source_volid", "backup_id"))
        if properties["size"] is None and not has_own_size:
            raise StackValidationFailed(
                'If neither "backup_id" nor "size" is provided, one of "source_volid", "snapshot_id" must be set.'
            )

    def restored(self, saved: Mapping[str, Any]) -> Properties:
        return {"backup_id": saved["backup_id"]}


class CinderVolumeAttachment(CloudType):
    name = "OS::Cinder::VolumeAttachment"
    description = "The connection of a volume to a server."
    kind = CloudKind.VOLUME_ATTACHMENT
    properties = {
        "instance_uuid": text(
            "Id of the server.", key="server_id", constraint="nova.server", required=True, update_allowed=True
        ),
        "volume_id": text("Id of the volume.", constraint="cinder.volume", required=True, update_allowed=True),
        "mountpoint": text("Name of the device on the server, such as /dev/vdb.", key="device", update_allowed=True),
    }


class CinderVolumeType(CloudType):
    name = "OS::Cinder::VolumeType"
    description = "A type of volumes, for administrators only."
    kind = CloudKind.VOLUME_TYPE
    properties = {
        "name": object_name("Name.", required=True, update_allowed=True),
        "metadata": mapping(
            "Extra specs, from which Cinder chooses a back end.", key="extra_specs", update_allowed=True
        ),
        "is_public": flag("Whether all projects may use the type.", default=True, update_allowed=True),
        "description": text("What the type is for.", update_allowed=True),
        "projects": Member(
            kind="list",
            key="stoker:projects",
            default=[],
            update_allowed=True,
            each=Property(kind="string", constraint="keystone.project"),
            description="Names or ids of the projects that may use a type that is not public.",
        ),
    }

    def validate(self, properties: Properties) -> None:
        """Raise StackValidationFailed for a public type with projects."""
        projects = properties["projects"]
        if properties["is_public"] is True and isinstance(projects, list) and projects:
            raise StackValidationFailed('Can not specify property "projects" if the volume type is public.')


class CinderEncryptedVolumeType(CloudType):
    name = "OS::Cinder::EncryptedVolumeType"
    description = "The encryption of a type of volumes, for administrators only."
    kind = CloudKind.VOLUME_ENCRYPTION
    properties = {
        "provider": text("Class or format of the encryption, such as luks.", required=True, update_allowed=True),
        "control_location": text(
            "Where volumes are encrypted: by Nova (front-end) or by the storage.",
            default="front-end",
            allowed=("front-end", "back-end"),
            update_allowed=True,
        ),
        "cipher": text(
            "Algorithm and mode of the encryption.", allowed=("aes-xts-plain64", "aes-cbc-essiv"), update_allowed=True
        ),
        "key_size": integer("Size of the key in bits.", update_allowed=True),
        "volume_type": text("Name or id of the type.", required=True, constraint="cinder.vtype"),
    }

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {name: properties[name] for name in self.properties or ()}
