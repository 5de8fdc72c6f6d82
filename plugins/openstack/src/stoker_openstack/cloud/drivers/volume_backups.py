"""Backups of volumes: the snapshots of volumes, as in Heat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import VOLUME
from stoker_openstack.cloud.drivers.base import DUE, STILL_WAITING, Done, Judgement, Result, Run, Wait
from stoker_openstack.cloud.errors import CloudFailure

BACKUPS = "backups"
#: Notes: the id of the backup that is being created; the volume is stored before its deletion; a restore was requested.
_BACKUP_ID, STORED, _RESTORING = "backup_id", "stored", "restoring"


def create_backup(run: Run, volume: Mapping[str, Any]) -> Result:
    """Create a backup, and wait for it."""
    backup_id = _ensure_backup(run, volume)
    state = _state(run, backup_id)
    if state.is_due:
        return Done({**run.object.observed, **volume, "stoker:snapshot": {"backup_id": backup_id}})
    return Wait(BACKUPS, polled_id=backup_id)


def store_before_deletion(run: Run, volume: Mapping[str, Any]) -> Result:
    """Create a backup of a volume that is to be deleted (deletion policy Snapshot); the next call deletes it."""
    backup_id = _ensure_backup(run, volume)
    if not _state(run, backup_id).is_due:
        return Wait(BACKUPS, "Waiting for the backup of the volume", polled_id=backup_id)
    run.note(**{STORED: True, "polled_id": None})
    return Wait("volumes")


def create_volume(run: Run) -> Result:
    """Create a volume by restoring a backup; Cinder makes the volume as large as the backup's."""
    path = f"/backups/{run.specification['stoker:backup_id']}/restore"
    restored = run.client.request(VOLUME, "POST", path, {"restore": {"name": run.object.name}}).json()["restore"]
    volume_path = f"/volumes/{restored['volume_id']}"
    run.client.request(VOLUME, "POST", f"{volume_path}/metadata", {"metadata": run.marker.metadata})
    created = run.client.get(VOLUME, volume_path)["volume"]
    run.record_created(created["id"], created)
    return Wait("volumes")


def restore(run: Run, volume: Mapping[str, Any]) -> Result:
    """RESTORE: restore a backup into the volume."""
    if run.progress.get(_RESTORING):
        return Done(volume) if volume["status"] in ("available", "in-use") else Wait("volumes")
    path = f"/backups/{run.object.arguments['backup_id']}/restore"
    run.client.request(VOLUME, "POST", path, {"restore": {"volume_id": run.external_id}})
    run.note(**{_RESTORING: True})
    return Wait("volumes")


def delete_backup(run: Run) -> Result:
    """Delete the backup of an earlier SNAPSHOT."""
    run.client.discard(VOLUME, f"/backups/{run.object.arguments['backup_id']}")
    return Done()


def judge(backup: Mapping[str, Any] | None) -> Judgement:
    """Decide what the state of a backup means: due when the backup is complete."""
    if backup is None or backup["status"].startswith("error"):
        reason = (backup or {}).get("fail_reason") or "it was deleted"
        raise CloudFailure(f"Failed to create the backup of the volume: {reason}", "ResourceInError")
    return DUE if backup["status"] == "available" else STILL_WAITING


def _state(run: Run, backup_id: str) -> Judgement:
    return judge(run.client.find(VOLUME, f"/backups/{backup_id}", "backup"))


def _ensure_backup(run: Run, volume: Mapping[str, Any]) -> str:
    """Return the id of the backup, whose name has the generation of the request, and create it if it is missing."""
    if run.progress.get(_BACKUP_ID):
        return str(run.progress[_BACKUP_ID])
    name = f"{run.marker.text}:{run.object.desired_generation}"
    backups = run.client.list(VOLUME, "/backups/detail", BACKUPS, query={"name": name})
    if backups:
        backup_id = str(backups[0]["id"])
    else:
        body = {"volume_id": run.external_id, "name": name, "force": volume["status"] == "in-use"}
        backup_id = str(run.client.request(VOLUME, "POST", "/backups", {"backup": body}).json()["backup"]["id"])
    run.note(**{_BACKUP_ID: backup_id})
    return backup_id
