"""Servers, key pairs, volumes, images, containers and secrets. ``servers.local`` runs the servers' processes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from stoker.model.errors import Conflict, EntityNotFound, Invalid
from stoker.objects import container_operations
from stoker.store import rows
from stoker_openstack.model import CloudKind, CloudObject
from stoker_openstack.simulated import networks
from stoker_openstack.simulated.project import Kind, Project
from stoker_openstack.store import cloud_objects

_ATTACHED = "os-extended-volumes:volumes_attached"
#: Size in GiB of a volume whose source is not in this cloud.
_SIZE = 1


def _server(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members, now = wanted.specification, rows.heat_time(project.tx.now)
    return {
        "created": wanted.observed.get("created", now),
        "updated": now,
        "flavor": {"original_name": members.get("flavorRef", "")},
        "image": {"id": project.resolve(CloudKind.IMAGE, members["imageRef"])} if "imageRef" in members else "",
        "config_drive": "True" if members.get("config_drive") else "",
        "OS-EXT-AZ:availability_zone": members.get("availability_zone", networks.ZONE),
        "OS-EXT-SRV-ATTR:instance_name": f"instance-{wanted.id[:8]}",
        **networks.connect(project, wanted),
    }


def _key_pair(_project: Project, wanted: CloudObject) -> dict[str, Any]:
    key = wanted.specification["public_key"]
    return {"public_key": key, "fingerprint": _fingerprint(key) if wanted.specification.get("type") != "x509" else ""}


def _key_name(project: Project, wanted: CloudObject) -> str:
    other = project.find(CloudKind.KEYPAIR, wanted.name)
    if other is not None and other.id != wanted.id:
        raise Invalid(f"Key pair '{wanted.name}' already exists.")
    return wanted.name


def _fingerprint(public_key: str) -> str:
    """Return the fingerprint that Nova computes: MD5 of the key's bytes. Raises Invalid for a malformed key."""
    try:
        data = base64.b64decode(public_key.split()[1], validate=True)
    except (IndexError, ValueError):
        raise Invalid("public_key: Keypair data is invalid: failed to generate fingerprint") from None
    return hashlib.md5(data, usedforsecurity=False).digest().hex(":")


def _volume(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members, before = wanted.specification, wanted.observed
    source = project.find(CloudKind.VOLUME, members.get("source_volid"))
    volume_type = project.find(CloudKind.VOLUME_TYPE, members.get("volume_type"))
    encryptions = _encryptions(project, volume_type.external_id) if volume_type is not None else []
    return {
        "size": members.get("size") or (source.observed["size"] if source else before.get("size", _SIZE)),
        "volume_type": volume_type.name if volume_type is not None else members.get("volume_type"),
        "encrypted": bool(encryptions),
        "bootable": "true" if "imageRef" in members else "false",
        "created_at": before.get("created_at", rows.heat_time(project.tx.now)),
        "source_volid": source.external_id if source else members.get("source_volid"),
    }


def _check_detached(_project: Project, volume: CloudObject) -> None:
    if volume.observed.get("attachments"):
        raise Invalid(f"Volume {volume.name} is attached to a server: it can not be deleted.")


def _attach(project: Project, wanted: CloudObject) -> dict[str, Any]:
    _detach(project, wanted)
    volume = project.require(CloudKind.VOLUME, wanted.specification["volume_id"])
    server = project.require(CloudKind.SERVER, wanted.specification["server_id"])
    others = [entry for entry in volume.observed["attachments"] if entry["attachment_id"] != wanted.id]
    if others and not volume.observed["multiattach"]:
        raise Invalid(f"Volume {volume.name} is already attached to a server.")
    attached = server.observed.get(_ATTACHED, ())
    device = wanted.specification.get("device") or f"/dev/vd{chr(ord('b') + len(attached) % 25)}"
    ids = {"volume_id": volume.external_id, "server_id": server.external_id}
    entry = {"id": volume.external_id, "attachment_id": wanted.id, **ids, "device": device}
    project.save(volume, status="in-use", attachments=[*others, entry])
    project.save(server, **{_ATTACHED: [*attached, {"id": volume.external_id}]})
    return {"volumeId": volume.external_id, "serverId": server.external_id, "device": device}


def _detach(project: Project, gone: CloudObject) -> None:
    volume_id = gone.observed.get("volumeId")
    volume = project.find(CloudKind.VOLUME, volume_id)
    if volume is not None:
        left = [entry for entry in volume.observed["attachments"] if entry["attachment_id"] != gone.id]
        project.save(volume, attachments=left, status="in-use" if left else "available")
    server = project.find(CloudKind.SERVER, gone.observed.get("serverId"))
    project.replace_entries(server, _ATTACHED, lambda entry: entry["id"] == volume_id)


def _volume_type(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members, other = wanted.specification, project.find(CloudKind.VOLUME_TYPE, wanted.name)
    if other is not None and other.id != wanted.id:
        raise Conflict(f"Volume Type {wanted.name} already exists.")
    shown = {name: members[name] for name in ("is_public", "extra_specs")}
    return {**shown, "projects": members["stoker:projects"]}


def _check_unused(project: Project, volume_type: CloudObject) -> None:
    name = volume_type.observed.get("name")
    if any(volume.observed.get("volume_type") == name for volume in project.of_kind(CloudKind.VOLUME)):
        raise Invalid(f"Volume Type {volume_type.name} is used by a volume: it can not be deleted.")


def _encryptions(project: Project, volume_type: str | None) -> list[CloudObject]:
    return cloud_objects.of_external_id(project.tx, project.id, CloudKind.VOLUME_ENCRYPTION, volume_type or "")


def _encryption(project: Project, wanted: CloudObject) -> dict[str, Any]:
    volume_type = _encrypted_type(project, wanted)
    if any(other.id != wanted.id for other in _encryptions(project, volume_type)):
        raise Conflict(f"Volume type encryption for type {volume_type} already exists.")
    return {"volume_type_id": volume_type, "encryption_id": wanted.id}


def _encrypted_type(project: Project, wanted: CloudObject) -> str:
    return project.resolve(CloudKind.VOLUME_TYPE, wanted.specification["volume_type"])


def _image(project: Project, wanted: CloudObject) -> dict[str, Any]:
    return {"owner": wanted.specification.get("owner", project.id)}


def _container(project: Project, wanted: CloudObject) -> Mapping[str, Any]:
    headers = {name.lower(): value for name, value in wanted.specification["headers"].items()}
    project.objects.create_container(project.tx, project.id, wanted.name, headers)
    account = {name.lower(): value for name, value in wanted.specification["stoker:account_headers"].items()}
    if account:
        container_operations.change_account(project.tx, project.id, account)
    return observe_container(project, wanted)


def observe_container(project: Project, wanted: CloudObject) -> Mapping[str, Any]:
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


def _delete_container(project: Project, gone: CloudObject) -> None:
    if gone.specification.get("stoker:purge_on_delete"):
        project.objects.delete_container_and_all(project.tx, project.id, gone.name)
    elif observe_container(project, gone):
        container_operations.delete_container(project.tx, project.id, gone.name)


def _secret_ref(project: Project, wanted: CloudObject) -> str:
    return f"{project.url}/key-manager/v1/secrets/{wanted.id}"


KINDS: Mapping[CloudKind, Kind] = {
    CloudKind.SERVER: Kind(
        defaults={
            "metadata": {},
            "tags": [],
            "key_name": None,
            "security_groups": [{"name": "default"}],
            "OS-DCF:diskConfig": "MANUAL",
            "stoker:rebuilds": 0,
        },
        kept={"status": "ACTIVE", _ATTACHED: []},
        fixed={"accessIPv4": "", "accessIPv6": ""},
        common=("id", "name", "tenant_id"),
        derive=_server,
        remove=networks.disconnect,
    ),
    # Servers do not use key pairs.
    CloudKind.KEYPAIR: Kind(defaults={"type": "ssh"}, common=("name",), derive=_key_pair, identify=_key_name),
    # Volumes and images have no data; the servers' processes get no device.
    CloudKind.VOLUME: Kind(
        defaults={
            "description": None,
            "metadata": {},
            "availability_zone": networks.ZONE,
            "multiattach": False,
            "snapshot_id": None,
        },
        kept={"status": "available", "attachments": []},
        common=("id", "name"),
        derive=_volume,
        remove=_check_detached,
    ),
    CloudKind.VOLUME_ATTACHMENT: Kind(common=("id",), derive=_attach, remove=_detach),
    CloudKind.VOLUME_TYPE: Kind(
        defaults={"description": None}, common=("id", "name"), derive=_volume_type, remove=_check_unused
    ),
    CloudKind.VOLUME_ENCRYPTION: Kind(omits=("volume_type",), common=(), derive=_encryption, identify=_encrypted_type),
    CloudKind.IMAGE: Kind(
        defaults={"tags": []}, omits=(), fixed={"status": "active"}, common=("id", "name"), derive=_image
    ),
    # Containers are those of the embedded object store.
    CloudKind.CONTAINER: Kind(
        common=(), derive=_container, remove=_delete_container, identify=lambda _, wanted: wanted.name
    ),
    CloudKind.SECRET: Kind(
        omits=("payload",),
        fixed={"status": "ACTIVE"},
        common=(),
        derive=lambda project, wanted: {"secret_ref": _secret_ref(project, wanted)},
        identify=_secret_ref,
    ),
}
