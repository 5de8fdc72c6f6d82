"""OS::Cinder::Volume: a block device that outlives servers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stoker.hot import UNKNOWN
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import Context, NoSuchAttribute, Outcome, Properties, ResourceFailure, physical_name
from stoker.resources.properties import Property
from stoker_openstack.model import CloudAction, CloudKind, own_metadata
from stoker_openstack.types.cloud_base import CloudType, observe
from stoker_openstack.types.cloud_properties import body, flag, text

#: Attributes with another name in Cinder's representation.
_RENAMED = {"display_name": "name", "display_description": "description"}
_SOURCES = ("snapshot_id", "image", "imageRef", "source_volid")
_ATTRIBUTES = {
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


class CinderVolume(CloudType):
    name = "OS::Cinder::Volume"
    description = "A block device that outlives servers."
    kind = CloudKind.VOLUME
    id_constraint = "cinder.volume"
    properties = {
        "availability_zone": text("Availability zone."),
        "size": Property(kind="integer", minimum=1, update_allowed=True, description="Size in GiB; may grow."),
        "snapshot_id": text("Id of the snapshot with the volume's content.", constraint="cinder.snapshot"),
        "backup_id": text(
            "Id of the backup with the volume's content.", constraint="cinder.backup", update_allowed=True
        ),
        "name": text("Name; by default stack, resource and a short id.", update_allowed=True),
        "description": text("What the volume is for.", update_allowed=True),
        "volume_type": text("Name or id of the type.", constraint="cinder.vtype", update_allowed=True),
        "metadata": Property(kind="map", default={}, update_allowed=True, description="Names and values."),
        "image": text("Name or id of the image with the volume's content.", constraint="glance.image"),
        "imageRef": text("The same; deprecated.", constraint="glance.image"),
        "source_volid": text("Name or id of the volume with the volume's content.", constraint="cinder.volume"),
        "scheduler_hints": Property(kind="map", description="Names and values for Cinder's scheduler."),
        "read_only": flag("Whether the volume is read-only.", update_allowed=True),
        "multiattach": flag("Whether several servers can attach the volume; deprecated.", default=False),
    }
    attributes = _ATTRIBUTES
    actions = {Action.CHECK: CloudAction.CHECK, Action.SNAPSHOT: CloudAction.SNAPSHOT}

    def specify(self, context: Context, resource: Resource, properties: Properties) -> dict[str, Any]:
        return {
            "name": properties["name"] or physical_name(context, resource),
            **body(
                properties,
                description="description",
                availability_zone="availability_zone",
                size="size",
                snapshot_id="snapshot_id",
                backup_id="stoker:backup_id",
                imageRef="imageRef",
                image="imageRef",
                source_volid="source_volid",
                volume_type="volume_type",
                metadata="metadata",
                multiattach="multiattach",
                read_only="stoker:read_only",
                scheduler_hints="stoker:scheduler_hints",
            ),
        }

    def update(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Change the volume. Raises ResourceFailure for a smaller size."""
        before, after = resource.properties.get("size"), properties["size"]
        if before is not None and after is not None and after < before:
            raise ResourceFailure(f"Shrinking volume is not supported: size {after} is less than {before}.")
        return super().update(context, resource, properties)

    def attribute(self, context: Context, resource: Resource, name: str) -> Any:
        if name not in _ATTRIBUTES:
            raise NoSuchAttribute(name)
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
        sources = [name for name in _SOURCES if properties[name] is not None]
        if len(sources) > 1 and not any(properties[name] is UNKNOWN for name in sources):
            raise StackValidationFailed(
                f"Cannot define the following properties at the same time: {', '.join(sorted(sources))}."
            )
        has_own_size = any(properties[name] is not None for name in ("snapshot_id", "source_volid", "backup_id"))
        if properties["size"] is None and not has_own_size:
            raise StackValidationFailed(
                'If neither "backup_id" nor "size" is provided, one of "source_volid", "snapshot_id" must be set.'
            )

    def restored(self, saved: Mapping[str, Any]) -> Properties:
        return {"backup_id": saved["backup_id"]}
