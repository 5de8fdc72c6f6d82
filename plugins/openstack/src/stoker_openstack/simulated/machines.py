"""Servers, key pairs, volumes, images, containers and secrets. ``servers.local`` runs the servers' processes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from stoker.model.errors import EntityNotFound, Invalid
from stoker.objects import operations
from stoker.store import rows
from stoker_openstack.model import PORTS, CloudKind, CloudObject
from stoker_openstack.simulated import network
from stoker_openstack.simulated.project import Kind, Project

#: Size in GiB of a volume whose source is not in this cloud.
_SIZE = 1


def _server(project: Project, wanted: CloudObject) -> dict[str, Any]:
    members, now = wanted.specification, rows.heat_time(project.tx.now)
    return {
        "status": wanted.observed.get("status", "ACTIVE"),
        "created": wanted.observed.get("created", now),
        "updated": now,
        "flavor": {"original_name": members.get("flavorRef", "")},
        "image": {"id": project.resolve(CloudKind.IMAGE, members["imageRef"])} if "imageRef" in members else "",
        "config_drive": "True" if members.get("config_drive") else "",
        "OS-EXT-AZ:availability_zone": members.get("availability_zone", network.ZONE),
        "OS-EXT-SRV-ATTR:instance_name": f"instance-{wanted.id[:8]}",
        PORTS: network.connect(project, wanted),
    }


def _server_relations(project: Project, server: CloudObject) -> dict[str, Any]:
    attachments = [item for item in project.of_kind(CloudKind.VOLUME_ATTACHMENT) if _is_at(item, server)]
    return {
        **network.addresses(project, server),
        "os-extended-volumes:volumes_attached": [{"id": item.observed["volumeId"]} for item in attachments],
    }


def _is_at(attachment: CloudObject, server: CloudObject) -> bool:
    return bool(attachment.observed["serverId"] == server.external_id)


def _key_pair(_project: Project, wanted: CloudObject) -> dict[str, Any]:
    key = wanted.specification["public_key"]
    return {"public_key": key, "fingerprint": _fingerprint(key) if wanted.specification.get("type") != "x509" else ""}


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
    return {
        "size": members.get("size") or (source.observed["size"] if source else before.get("size", _SIZE)),
        "volume_type": volume_type.name if volume_type is not None else members.get("volume_type"),
        "bootable": "true" if "imageRef" in members else "false",
        "created_at": before.get("created_at", rows.heat_time(project.tx.now)),
        "source_volid": source.external_id if source else members.get("source_volid"),
    }


def _volume_relations(project: Project, volume: CloudObject) -> dict[str, Any]:
    all_attachments = project.of_kind(CloudKind.VOLUME_ATTACHMENT)
    attachments = [item.observed for item in all_attachments if item.observed["volumeId"] == volume.external_id]
    volume_type = project.find(CloudKind.VOLUME_TYPE, volume.observed["volume_type"])
    encrypted = {item.external_id for item in project.of_kind(CloudKind.VOLUME_ENCRYPTION)}
    return {
        "status": "in-use" if attachments else "available",
        "attachments": [
            {
                "id": item["volumeId"],
                "attachment_id": item["id"],
                "volume_id": item["volumeId"],
                "server_id": item["serverId"],
                "device": item["device"],
            }
            for item in attachments
        ],
        "encrypted": volume_type is not None and volume_type.external_id in encrypted,
    }


def _attach(project: Project, wanted: CloudObject) -> dict[str, Any]:
    volume = project.require(CloudKind.VOLUME, wanted.specification["volume_id"])
    server = project.require(CloudKind.SERVER, wanted.specification["server_id"])
    others = [item for item in project.of_kind(CloudKind.VOLUME_ATTACHMENT) if item.id != wanted.id]
    if any(item.observed["volumeId"] == volume.external_id for item in others) and not volume.observed["multiattach"]:
        raise Invalid(f"Volume {volume.name} is already attached to a server.")
    number = sum(_is_at(item, server) for item in others)
    device = wanted.specification.get("device") or f"/dev/vd{chr(ord('b') + number % 25)}"
    return {"volumeId": volume.external_id, "serverId": server.external_id, "device": device}


def _encryption(project: Project, wanted: CloudObject) -> dict[str, Any]:
    volume_type = project.resolve(CloudKind.VOLUME_TYPE, wanted.specification["volume_type"])
    return {"volume_type_id": volume_type, "encryption_id": wanted.id}


def _container(project: Project, wanted: CloudObject) -> Mapping[str, Any]:
    operations.create_container(project.tx, project.id, wanted.name, wanted.specification["headers"])
    if account := wanted.specification["stoker:account_headers"]:
        operations.change_account(project.tx, project.id, account)
    return _observe_container(project, wanted)


def _observe_container(project: Project, wanted: CloudObject) -> Mapping[str, Any]:
    """Return the present headers and the URL; empty if a client has deleted the container."""
    try:
        container = operations.container(project.tx, project.id, wanted.name)
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
        operations.delete_container_and_all(project.tx, project.id, gone.name)
    elif _observe_container(project, gone):
        operations.delete_container(project.tx, project.id, gone.name)


def _secret(project: Project, wanted: CloudObject) -> dict[str, Any]:
    return {"secret_ref": f"{project.url}/key-manager/v1/secrets/{wanted.id}"}


KINDS: Mapping[CloudKind, Kind] = {
    CloudKind.SERVER: Kind(
        defaults={
            "tags": [],
            "key_name": None,
            "OS-DCF:diskConfig": "MANUAL",
            "accessIPv4": "",
            "accessIPv6": "",
        },
        hidden=("adminPass", "networks", "personality"),
        derive=_server,
        relate=_server_relations,
        remove=network.disconnect,
    ),
    # Servers do not use key pairs.
    CloudKind.KEYPAIR: Kind(
        defaults={"type": "ssh"},
        has_unique_name=True,
        derive=_key_pair,
        identify=lambda wanted, _: wanted.name,
    ),
    # Volumes and images have no data; the servers' processes get no device.
    CloudKind.VOLUME: Kind(
        defaults={
            "description": None,
            "availability_zone": network.ZONE,
            "multiattach": False,
            "snapshot_id": None,
        },
        derive=_volume,
        relate=_volume_relations,
    ),
    CloudKind.VOLUME_ATTACHMENT: Kind(derive=_attach),
    CloudKind.VOLUME_TYPE: Kind(
        defaults={"description": "", "is_public": True, "extra_specs": {}},
        has_unique_name=True,
        derive=lambda _, wanted: {"projects": wanted.specification["stoker:projects"]},
    ),
    CloudKind.VOLUME_ENCRYPTION: Kind(
        hidden=("volume_type",), derive=_encryption, identify=lambda _, encryption: encryption["volume_type_id"]
    ),
    CloudKind.IMAGE: Kind(
        defaults={"tags": [], "status": "active"},
        derive=lambda project, wanted: {"owner": wanted.specification.get("owner", project.id)},
    ),
    # Containers are those of the embedded object store.
    CloudKind.CONTAINER: Kind(
        is_computed=True,
        derive=_container,
        relate=_observe_container,
        remove=_delete_container,
        identify=lambda wanted, _: wanted.name,
    ),
    CloudKind.SECRET: Kind(
        defaults={"status": "ACTIVE"},
        hidden=("payload",),
        derive=_secret,
        identify=lambda _, secret: secret["secret_ref"],
    ),
}
