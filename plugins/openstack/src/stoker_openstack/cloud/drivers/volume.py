"""Volumes of Cinder."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker_openstack.cloud.client import VOLUME
from stoker_openstack.cloud.drivers.base import (
    DUE,
    STILL_WAITING,
    UNKNOWN_FAULT,
    Done,
    Driver,
    Judgement,
    Result,
    Run,
    Wait,
    members_of,
    refuse_broken,
    texts_of,
)
from stoker_openstack.cloud.drivers.snapshots import STORED, VOLUME_BACKUPS
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudAction, CloudKind, CloudObject, own_metadata

#: States in which a volume stays until a user changes it.
_SETTLED = frozenset({"available", "in-use"})
_REFERENCES: Mapping[str, str] = {"imageRef": "image", "snapshot_id": "snapshot", "source_volid": "volume"}
#: Note: the id of the type to which Cinder was asked to change the volume.
_RETYPED = "retyped"
#: Microversions: extending a volume in use; all others.
_EXTEND_VERSION, _VERSION = "volume 3.42", "volume 3.0"
#: Members of the specification that updates of a volume compare by themselves.
_TEXTS = ("name", "description")
#: Keys of a volume's metadata that Cinder sets.
_CINDERS = ("readonly", "attached_mode")


class VolumeDriver(Driver):
    """The driver of volumes."""

    kind, noun = CloudKind.VOLUME, NOUNS["volume"]

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        is_state = error.status == 409 or (error.status == 400 and "status must be" in str(error))
        return is_state and run.object.external_id is not None

    def create(self, run: Run) -> Result:
        if run.specification.get("stoker:backup_id"):
            return VOLUME_BACKUPS.create_volume(run)
        volume = members_of(run.specification)
        for key, kind in _REFERENCES.items():
            if volume.get(key):
                volume[key] = run.names.resolve(kind, str(volume[key]))
        volume["metadata"] = {**texts_of(volume.get("metadata")), **run.marker.metadata}
        body: dict[str, Any] = {"volume": volume}
        if run.specification.get("stoker:scheduler_hints"):
            body["OS-SCH-HNT:scheduler_hints"] = run.specification["stoker:scheduler_hints"]
        created = run.client.request(VOLUME, "POST", "/volumes", body).json()["volume"]
        run.record_created(created["id"], created)
        return Wait(self.noun.key)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        refuse_broken(self, observed)
        if self.is_changing(observed):
            return Wait(self.noun.key, observed=observed)
        return Wait(self.noun.key) if self._change(run, observed) else Done(self.read(run))

    def delete(self, run: Run) -> Result:
        observed = self.read(run)
        if observed is None:
            return Done(is_gone=True)
        if observed["status"] == "deleting":
            return Wait(self.noun.key)
        if run.object.arguments.get("snapshot") and not run.progress.get(STORED):
            return VOLUME_BACKUPS.store_before_deletion(run, observed)
        self.noun.delete(run.client, run.external_id)
        return Wait(self.noun.key)

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        return UNKNOWN_FAULT if str(observed["status"]).startswith("error") else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        return observed["status"] not in _SETTLED

    def carry_out(self, run: Run, observed: Mapping[str, Any], action: CloudAction) -> Result:
        if action is CloudAction.SNAPSHOT:
            return VOLUME_BACKUPS.create(run, observed)
        if action is CloudAction.DELETE_SNAPSHOT:
            return VOLUME_BACKUPS.delete(run)
        if action is CloudAction.RESTORE:
            refuse_broken(self, observed)
            return VOLUME_BACKUPS.restore(run, observed)
        return Done(observed)  # volumes need no suspension

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Judgement:
        if item.awaits == VOLUME_BACKUPS.noun.key:
            return VOLUME_BACKUPS.judge(observed)
        if item.action is CloudAction.DELETE:
            if observed is not None and observed["status"] == "error_deleting":
                raise CloudFailure(
                    f"Volume {item.name} cannot be deleted: its status is error_deleting", "ResourceInError"
                )
            return DUE if observed is None or observed["status"] != "deleting" else STILL_WAITING
        return super().judge(item, observed, now)

    def _change(self, run: Run, observed: Mapping[str, Any]) -> bool:
        """Send the requests that the volume needs. Return whether Cinder now changes it."""
        path, wanted = f"/volumes/{run.external_id}", run.specification
        texts = {key: wanted[key] for key in _TEXTS if key in wanted and (wanted[key] or "") != (observed[key] or "")}
        if texts:
            run.client.request(VOLUME, "PUT", path, {"volume": texts})
        metadata = {**texts_of(wanted.get("metadata")), **run.marker.metadata}
        if "metadata" in wanted and _users(observed["metadata"]) != _users(metadata):
            run.client.request(VOLUME, "PUT", f"{path}/metadata", {"metadata": metadata})
        elif run.marker.metadata.items() - observed["metadata"].items():  # an adopted volume
            run.client.request(VOLUME, "POST", f"{path}/metadata", {"metadata": run.marker.metadata})
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
    wanted = run.names.resolve("volume_type", str(run.specification["volume_type"]))
    present = observed["volume_type"]
    if present and run.names.resolve("volume_type", str(present)) == wanted:
        return False
    if run.progress.get(_RETYPED) == wanted:
        name = run.specification["volume_type"]
        raise CloudFailure(f"Volume retype failed: the volume has the type {present}, not {name}", "ResourceInError")
    _send(run, {"os-retype": {"new_type": wanted, "migration_policy": "on-demand"}})
    run.note(**{_RETYPED: wanted})
    return True


def _send(run: Run, action: Mapping[str, Any], version: str = _VERSION) -> None:
    headers = {"OpenStack-API-Version": version}
    run.client.request(VOLUME, "POST", f"/volumes/{run.external_id}/action", dict(action), headers=headers)


def _users(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that users set."""
    return {key: value for key, value in own_metadata(metadata).items() if key not in _CINDERS}
