"""Volumes, attachments, images, containers and secrets of the cloud of one machine. Containers are real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.model.cloud import CloudKind, CloudObject
from stoker.model.errors import EntityNotFound, Invalid
from stoker.objects import container_operations
from stoker.servers.local_cloud import volume_types
from stoker.servers.local_cloud.project import PlainHandler, Project
from stoker.store import rows

_ATTACHED = "os-extended-volumes:volumes_attached"
#: Size in GiB of a volume whose source is not in this cloud.
_SIZE = 1


class Volumes(PlainHandler):
    """Volumes without data."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members, before = wanted.specification, wanted.observed
        source = project.find(CloudKind.VOLUME, members["source_volid"]) if "source_volid" in members else None
        return {
            "id": wanted.external_id,
            "name": wanted.name,
            "description": members.get("description"),
            "size": members.get("size") or (source.observed["size"] if source else before.get("size", _SIZE)),
            "status": before.get("status", "available"),
            **volume_types.describe(project, members.get("volume_type")),
            "metadata": members.get("metadata", {}),
            "attachments": before.get("attachments", []),
            "availability_zone": members.get("availability_zone", "nova"),
            "bootable": "true" if "imageRef" in members else "false",
            "created_at": before.get("created_at", rows.heat_time(project.tx.now)),
            "multiattach": members.get("multiattach", False),
            "snapshot_id": members.get("snapshot_id"),
            "source_volid": source.external_id if source else members.get("source_volid"),
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        if gone.observed.get("attachments"):
            raise Invalid(f"Volume {gone.name} is attached to a server: it can not be deleted.")


class VolumeAttachments(PlainHandler):
    """Attachments, which volumes and servers list. The servers' processes get no device."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        self.delete(project, wanted)
        server_id, ref = wanted.specification["server_id"], wanted.specification["volume_id"]
        volume = project.find(CloudKind.VOLUME, ref)
        server = project.find(CloudKind.SERVER, server_id)
        if volume is None or server is None:
            name, id = ("Volume", ref) if volume is None else ("Server", server_id)
            raise Invalid(f"{name} {id} could not be found.")
        others = [entry for entry in volume.observed["attachments"] if entry["attachment_id"] != wanted.id]
        if others and not volume.observed["multiattach"]:
            raise Invalid(f"Volume {volume.name} is already attached to a server.")
        count = len(server.observed.get(_ATTACHED, ()))
        device = wanted.specification.get("device") or f"/dev/vd{chr(ord('b') + count % 25)}"
        entry = {
            "id": volume.external_id,
            "attachment_id": wanted.id,
            "volume_id": volume.external_id,
            "server_id": server.external_id,
            "device": device,
        }
        project.save(volume, status="in-use", attachments=[*others, entry])
        project.save(server, **{_ATTACHED: [*server.observed.get(_ATTACHED, ()), {"id": volume.external_id}]})
        return {
            "id": wanted.external_id,
            "volumeId": volume.external_id,
            "serverId": server.external_id,
            "device": device,
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        volume_id, server_id = gone.observed.get("volumeId", ""), gone.observed.get("serverId", "")
        volume, server = project.find(CloudKind.VOLUME, volume_id), project.find(CloudKind.SERVER, server_id)
        if volume is not None:
            left = [entry for entry in volume.observed["attachments"] if entry["attachment_id"] != gone.id]
            project.save(volume, attachments=left, status="in-use" if left else "available")
        if server is not None:
            attached = [entry for entry in server.observed.get(_ATTACHED, ()) if entry["id"] != volume_id]
            project.save(server, **{_ATTACHED: attached})


class Images(PlainHandler):
    """Images without data."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = {name: value for name, value in wanted.specification.items() if not name.startswith("stoker:")}
        return {
            "tags": [],
            "owner": project.id,
            **members,
            "id": wanted.external_id,
            "name": wanted.name,
            "status": "active",
        }


class Containers:
    """Containers of the embedded object store."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        headers = {name.lower(): value for name, value in wanted.specification["headers"].items()}
        project.objects.create_container(project.tx, project.id, wanted.name, headers)
        account = {name.lower(): value for name, value in wanted.specification["stoker:account_headers"].items()}
        if account:
            container_operations.change_account(project.tx, project.id, account)
        return self.observe(project, wanted)

    def observe(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        """Return the present headers and the URL; empty if a client has deleted the container."""
        try:
            container = container_operations.container(project.tx, project.id, wanted.name)
        except EntityNotFound:
            return {}
        return {
            **container.headers,
            "x-container-object-count": str(container.objects),
            "x-container-bytes-used": str(container.bytes),
            "stoker:url": f"{project.url}/object-store/v1/AUTH_{project.id}/{wanted.name}",
        }

    def delete(self, project: Project, gone: CloudObject) -> None:
        if gone.specification.get("stoker:purge_on_delete"):
            project.objects.delete_container_and_all(project.tx, project.id, gone.name)
        elif self.observe(project, gone):
            container_operations.delete_container(project.tx, project.id, gone.name)

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        return wanted.name


class Secrets:
    """Secrets, encrypted in the database."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        members = {name: value for name, value in wanted.specification.items() if name != "payload"}
        return {**members, "status": "ACTIVE", "secret_ref": self.external_id(project, wanted)}

    def delete(self, project: Project, gone: CloudObject) -> None:
        """Do nothing: nothing depends on a secret."""

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        return f"{project.url}/key-manager/v1/secrets/{wanted.id}"
