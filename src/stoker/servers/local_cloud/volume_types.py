"""Types of volumes and their encryption on the cloud of one machine. They have no effect on volumes without data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import Conflict, Invalid
from stoker.servers.local_cloud.project import PlainHandler, Project
from stoker.store import cloud_objects


class VolumeTypes(PlainHandler):
    """Types of volumes, each with a unique name."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = wanted.specification
        other = project.find(CloudKind.VOLUME_TYPE, wanted.name)
        if other is not None and other.id != wanted.id:
            raise Conflict(f"Volume Type {wanted.name} already exists.")
        return {
            "id": wanted.external_id,
            "name": wanted.name,
            "description": members.get("description"),
            "is_public": members["is_public"],
            "extra_specs": members["extra_specs"],
            "projects": members["stoker:projects"],
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        volumes = cloud_objects.of_kind(project.tx, project.id, CloudKind.VOLUME)
        if any(volume.observed.get("volume_type") == gone.observed.get("name") for volume in volumes):
            raise Invalid(f"Volume Type {gone.name} is used by a volume: it can not be deleted.")


class VolumeEncryptions(PlainHandler):
    """The encryption of a type of volumes, one for each type."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        volume_type = self.external_id(project, wanted)
        others = cloud_objects.of_external_id(project.tx, project.id, CloudKind.VOLUME_ENCRYPTION, volume_type)
        if any(other.id != wanted.id for other in others):
            raise Conflict(f"Volume type encryption for type {volume_type} already exists.")
        members = {name: value for name, value in wanted.specification.items() if name != "volume_type"}
        return {**members, "volume_type_id": volume_type, "encryption_id": wanted.id}

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        return project.resolve(CloudKind.VOLUME_TYPE, wanted.specification["volume_type"])


def describe(project: Project, ref: str | None) -> dict[str, Any]:
    """Return the members of a volume's representation that depend on its type: a name, and whether it is encrypted."""
    volume_type = project.find(CloudKind.VOLUME_TYPE, ref) if ref else None
    if volume_type is None or volume_type.external_id is None:
        return {"volume_type": ref, "encrypted": False}
    encryptions = cloud_objects.of_external_id(
        project.tx, project.id, CloudKind.VOLUME_ENCRYPTION, volume_type.external_id
    )
    return {"volume_type": volume_type.name, "encrypted": bool(encryptions)}
