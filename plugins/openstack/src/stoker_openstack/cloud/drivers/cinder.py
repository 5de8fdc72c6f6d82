"""Volumes of Cinder, their attachments to servers, and the types of volumes with their encryption."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker_openstack.cloud.client import COMPUTE, VOLUME, suppressing
from stoker_openstack.cloud.drivers.base import (
    STILL_WAITING,
    UNKNOWN_FAULT,
    Done,
    Driver,
    Result,
    Run,
    Wait,
    await_stable,
    differences,
    members_of,
    set_metadata,
    texts_of,
)
from stoker_openstack.cloud.drivers.snapshots import VOLUME_BACKUPS
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudAction, CloudKind, CloudObject, body_of

#: States in which a volume stays until a user changes it.
_SETTLED = frozenset({"available", "in-use"})
#: Note: the id of the type to which Cinder was asked to change the volume.
_RETYPED = "retyped"
#: Microversions: extending a volume in use; all others.
_EXTEND_VERSION, _VERSION = "volume 3.42", "volume 3.0"
#: Members of volumes and their types that updates compare by themselves.
_TEXTS = ("name", "description")
#: Keys of a volume's metadata that Cinder sets.
_CINDERS = ("readonly", "attached_mode")


class VolumeDriver(Driver):
    """The driver of volumes."""

    kind, noun, snapshots = CloudKind.VOLUME, NOUNS["volume"], VOLUME_BACKUPS

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        is_state = error.status == 409 or (error.status == 400 and "status must be" in str(error))
        return is_state and run.object.external_id is not None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        if run.specification.get("stoker:backup_id"):
            return VOLUME_BACKUPS.create_volume(run)
        volume = members_of(run.login.resolve_body(run.specification))
        volume["metadata"] = {**texts_of(volume.get("metadata")), **run.marker.metadata}
        hints = run.specification.get("stoker:scheduler_hints")
        beside = {"OS-SCH-HNT:scheduler_hints": hints} if hints else {}
        created = self.noun.create(run.client, volume, beside=beside)
        return str(created["id"]), created

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if wait := await_stable(self, observed):
            return wait
        return Wait(self.noun.key) if self._change(run, observed) else Done(self.read(run))

    def delete(self, run: Run) -> Wait | None:
        observed = self.read(run)
        if observed is not None and observed["status"] != "deleting":
            self.noun.delete(run.client, run.external_id)
        return Wait(self.noun.key) if observed is not None else None

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        return UNKNOWN_FAULT if str(observed["status"]).startswith("error") else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        return observed["status"] not in _SETTLED

    def judge_deletion(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        if observed is not None and observed["status"] == "error_deleting":
            text = f"Volume {item.name} cannot be deleted: its status is error_deleting"
            raise CloudFailure(text, "ResourceInError")
        return STILL_WAITING if observed is not None and observed["status"] == "deleting" else None

    def _change(self, run: Run, observed: Mapping[str, Any]) -> bool:
        """Send the requests that the volume needs. Return whether Cinder now changes it."""
        wanted = run.specification
        texts = {key: wanted[key] for key in _TEXTS if key in wanted and (wanted[key] or "") != (observed[key] or "")}
        if texts:
            self.noun.change(run.client, run.external_id, texts)
        set_metadata(run, observed, _CINDERS)
        is_read_only = wanted.get("stoker:read_only")
        if is_read_only is not None and is_read_only != (observed["metadata"].get("readonly") == "True"):
            _send(run, {"os-update_readonly_flag": {"readonly": bool(is_read_only)}})
        if wanted.get("volume_type") and wanted["volume_type"] != observed["volume_type"] and _retype(run, observed):
            return True
        if wanted.get("size") and int(wanted["size"]) > int(observed["size"]):
            version = _EXTEND_VERSION if observed["status"] == "in-use" else _VERSION
            _send(run, {"os-extend": {"new_size": int(wanted["size"])}}, version)
            return True
        return False


def _retype(run: Run, observed: Mapping[str, Any]) -> bool:
    """
    Request the type of the specification; return whether Cinder now changes the volume.

    Raises CloudFailure if Cinder has not changed the type: a volume then returns to its former state.
    """
    wanted = run.login.resolve("volume_type", str(run.specification["volume_type"]))
    present = observed["volume_type"]
    if present and run.login.resolve("volume_type", str(present)) == wanted:
        return False
    if run.progress.get(_RETYPED) == wanted:
        name = run.specification["volume_type"]
        raise CloudFailure(f"Volume retype failed: the volume has the type {present}, not {name}", "ResourceInError")
    _send(run, {"os-retype": {"new_type": wanted, "migration_policy": "on-demand"}})
    run.note(**{_RETYPED: wanted})
    return True


def _send(run: Run, action: Mapping[str, Any], version: str = _VERSION) -> None:
    run.send("POST", "/action", dict(action), headers={"OpenStack-API-Version": version})


_VOLUME = NOUNS["volume"]
#: States of the volume that pass.
_TRANSIENT = ("attaching", "reserved", "detaching", "creating", "downloading", "extending", "backing-up", "retyping")


class VolumeAttachmentDriver(Driver):
    """The driver of attachments. The external id is the volume's, as in Nova."""

    kind, noun = CloudKind.VOLUME_ATTACHMENT, Noun("VolumeAttachment", COMPUTE)

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        return error.status == 409 or (error.status == 400 and "status" in str(error))

    def read(self, run: Run) -> Mapping[str, Any] | None:
        present = run.object.observed or self._resolve(run)
        return _attachments(present).find(run.client, str(present["volumeId"]))

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        wanted = self._resolve(run)
        return _attachments(wanted).find(run.client, wanted["volumeId"])

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        wanted = self._resolve(run)
        body = {"volumeId": wanted["volumeId"]}
        if run.specification.get("device"):
            body["device"] = run.specification["device"]
        created = {**wanted, **_attachments(wanted).create(run.client, body)}
        return str(created["id"]), created

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted = self._resolve(run)
        if (observed["serverId"], observed["volumeId"]) != (wanted["serverId"], wanted["volumeId"]):
            self.delete(run)
            raise CloudFailure("An attachment cannot be changed to another server or volume.", "NotSupported")
        return self.check(run, observed)

    def delete(self, run: Run) -> Wait:
        observed = run.object.observed
        _attachments(observed).delete(run.client, observed["volumeId"])
        return self._wait(observed)

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        """Decide by the volume's state; ``observed`` is the volume."""
        if observed is None:
            return None
        if item.action is CloudAction.DELETE:
            return STILL_WAITING if observed["status"] == "detaching" else None
        if observed["status"] == "error":
            raise CloudFailure("Volume attachment failed: the volume went to status error", "ResourceUnknownStatus")
        return STILL_WAITING if observed["status"] in _TRANSIENT else None

    def check(self, run: Run, observed: Mapping[str, Any]) -> Result:
        volume = _VOLUME.find(run.client, observed["volumeId"])
        status = volume["status"] if volume else "missing"
        if status == "in-use":
            return Done({**run.object.observed, **observed})
        if status in _TRANSIENT:
            return self._wait(observed)
        raise CloudFailure(f"Volume attachment failed - Unknown status {status}", "ResourceUnknownStatus")

    def _wait(self, observed: Mapping[str, Any]) -> Wait:
        return Wait(_VOLUME.key, polled_id=str(observed["volumeId"]))

    def _resolve(self, run: Run) -> dict[str, str]:
        return {
            "serverId": run.login.resolve("server", str(run.specification["server_id"])),
            "volumeId": run.login.resolve("volume", str(run.specification["volume_id"])),
        }


def _attachments(attachment: Mapping[str, Any]) -> Noun:
    """Return the noun of the attachments of the server of an attachment."""
    path = f"/servers/{attachment['serverId']}/os-volume_attachments"
    return Noun("VolumeAttachment", COMPUTE, path, "volumeAttachments")


_PUBLIC, _SPECS, _PROJECTS = "os-volume-type-access:is_public", "extra_specs", "stoker:projects"


class VolumeTypeDriver(Driver):
    """The driver of volume types. Without a description by the user, the description is the marker."""

    kind, noun = CloudKind.VOLUME_TYPE, NOUNS["volume_type"]

    def body(self, run: Run) -> dict[str, Any]:
        wanted = run.specification
        return {
            "name": wanted["name"],
            "description": run.marker.text,
            _PUBLIC: wanted["is_public"],
            _SPECS: texts_of(wanted.get(_SPECS)),
        }

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted = {**run.specification, "description": run.specification.get("description") or run.marker.text}
        changes = {name: wanted[name] for name in _TEXTS if wanted[name] != observed.get(name)}
        if bool(wanted["is_public"]) != bool(observed.get("is_public", observed.get(_PUBLIC))):
            changes["is_public"] = wanted["is_public"]
        if changes:
            self.noun.change(run.client, run.external_id, changes)
        _set_specs(run, texts_of(wanted.get(_SPECS)), observed.get(_SPECS) or {})
        if not wanted["is_public"]:
            _set_projects(run, [str(name) for name in wanted.get(_PROJECTS) or ()])
        return Done(self.read(run))


class VolumeEncryptionDriver(Driver):
    """The driver of the encryption of volume types. The external id is the volume type's, as in Heat."""

    kind, noun = CloudKind.VOLUME_ENCRYPTION, Noun("EncryptedVolumeType", VOLUME, "/types")

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return self._find(run, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        volume_type = self._volume_type(run)
        present = self._find(run, volume_type)
        return {**present, "id": volume_type} if present else None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        volume_type = self._volume_type(run)
        return volume_type, _encryptions(volume_type).create(run.client, self.body(run))

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if changes := differences(self.body(run), observed):
            _encryptions(run.external_id).change(run.client, observed["encryption_id"], changes)
        return Done(self.read(run))

    def delete(self, run: Run) -> None:
        if present := self.read(run):
            _encryptions(run.external_id).delete(run.client, present["encryption_id"])

    def body(self, run: Run) -> dict[str, Any]:
        body = body_of(run.specification)
        del body["volume_type"]
        return body

    def _volume_type(self, run: Run) -> str:
        return run.login.resolve("volume_type", str(run.specification["volume_type"]))

    def _find(self, run: Run, volume_type: str) -> Mapping[str, Any] | None:
        """Return the encryption of a type; Cinder represents a missing one by an empty object."""
        present = self.noun.find(run.client, f"{volume_type}/encryption")
        return present if present and present.get("encryption_id") else None


def _encryptions(volume_type: str) -> Noun:
    """Return the noun of the encryption of a type."""
    return Noun("EncryptedVolumeType", VOLUME, f"/types/{volume_type}/encryption", "encryption")


def _set_specs(run: Run, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    for name in present.keys() - wanted.keys():
        with suppressing(404):
            run.send("DELETE", f"/{_SPECS}/{name}")
    changes = {name: value for name, value in wanted.items() if present.get(name) != value}
    if changes:
        run.send("POST", f"/{_SPECS}", {_SPECS: changes})


def _set_projects(run: Run, names: list[str]) -> None:
    """Let exactly these projects use a type that is not public."""
    wanted = {run.login.resolve("project", name) for name in names}
    entries = run.send("GET", "/os-volume-type-access").json()["volume_type_access"]
    present = {str(entry["project_id"]) for entry in entries}
    for action, projects in (("removeProjectAccess", present - wanted), ("addProjectAccess", wanted - present)):
        for project in sorted(projects):
            run.send("POST", "/action", {action: {"project": project}})
