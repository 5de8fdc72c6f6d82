"""Snapshots: images of servers and backups of volumes, which SNAPSHOT and the deletion policy Snapshot create."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from stoker_openstack.cloud.client import VOLUME
from stoker_openstack.cloud.drivers.base import (
    ABANDONED,
    STORED,
    Done,
    Result,
    Run,
    Wait,
)
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.markers import marker_of
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import GENERATION_KEY

#: Note: the id of the snapshot that is being created.
_SNAPSHOT_ID = "snapshot_id"
_log = structlog.get_logger("stoker.backends")


class Snapshots:
    """The snapshots of one kind of objects."""

    noun: Noun
    #: The name of snapshots in reasons.
    words = ""
    #: The key of the snapshot's id in ``arguments`` and in ``observed``.
    key = ""

    def find(self, run: Run) -> str | None:
        """Return the id of the snapshot that an interrupted action of this generation has requested."""
        raise NotImplementedError

    def request(self, run: Run) -> str:
        """Request a snapshot, and return its id."""
        raise NotImplementedError

    def is_complete(self, snapshot: Mapping[str, Any] | None) -> bool:
        """Return whether a snapshot is complete. Raises CloudFailure if there is none, or if its creation failed."""
        raise NotImplementedError

    def create(self, run: Run, observed: Mapping[str, Any]) -> Result:
        """Create a snapshot of the object, and wait for it."""
        id, is_complete = self._ensure(run)
        if is_complete:
            return Done({**run.object.observed, **observed, "stoker:snapshot": {self.key: id}})
        return Wait(self.noun.key, polled_id=id)

    def store_before_deletion(self, run: Run) -> Result:
        """Create a snapshot of an object that is to be deleted (deletion policy Snapshot); the next call deletes it."""
        id, is_complete = self._ensure(run)
        if not is_complete:
            return Wait(self.noun.key, f"Waiting for the {self.words}", polled_id=id)
        run.note(**{STORED: True, "polled_id": None})
        return Wait(run.noun.key)

    def delete(self, run: Run) -> Result:
        """Delete what an earlier SNAPSHOT has created."""
        self.noun.discard(run.client, str(run.object.arguments[self.key]))
        return Done()

    def delete_abandoned(self, run: Run) -> None:
        """Delete the snapshots that a newer request superseded."""

    def _ensure(self, run: Run) -> tuple[str, bool]:
        """Return the id of the snapshot, which is requested if it is missing, and whether the snapshot is complete."""
        if not run.progress.get(_SNAPSHOT_ID):
            run.note(**{_SNAPSHOT_ID: self.find(run) or self.request(run)})
        id = str(run.progress[_SNAPSHOT_ID])
        return id, self.is_complete(self.noun.find(run.client, id))


class ServerImages(Snapshots):
    """Images of servers."""

    noun, words, key = NOUNS["image"], "image of the server", "snapshot_image_id"

    def find(self, run: Run) -> str | None:
        current = (run.object.observed.get("stoker:snapshot") or {}).get(self.key)
        for image in self.noun.list(run.client, {"name": _image_name(run)}):
            if image.get("stoker-resource-id") == run.marker.resource_id and image["id"] != current:
                return str(image["id"])
        return None

    def request(self, run: Run) -> str:
        metadata = {**run.marker.metadata, GENERATION_KEY: str(run.object.desired_generation)}
        answer = run.send("POST", "/action", {"createImage": {"name": _image_name(run), "metadata": metadata}})
        return str(answer.headers["Location"]).rpartition("/")[2]

    def is_complete(self, snapshot: Mapping[str, Any] | None) -> bool:
        if snapshot is None or snapshot["status"] in ("killed", "deleted"):
            raise CloudFailure("Failed to create the image of the server.", "Error")
        return bool(snapshot["status"] == "active")

    def delete_abandoned(self, run: Run) -> None:
        """An image that Glance protects stays."""
        generations = {str(generation) for generation in run.progress.get(ABANDONED) or ()}
        if not generations:
            return
        for image in self.noun.list(run.client, run.marker.metadata):
            if marker_of(image) == run.marker and image.get(GENERATION_KEY) in generations:
                try:
                    self.noun.discard(run.client, str(image["id"]))
                except CloudRefused as error:
                    if error.status == 409:
                        raise
                    _log.warning("cloud_object.image_kept", external_id=image["id"], error=str(error))
        run.note(**{ABANDONED: None})


class VolumeBackups(Snapshots):
    """Backups of volumes, which are the snapshots of volumes in Heat, too."""

    noun, words, key = NOUNS["backup"], "backup of the volume", "backup_id"

    def find(self, run: Run) -> str | None:
        backups = self.noun.list(run.client, {"name": _backup_name(run)})
        return str(backups[0]["id"]) if backups else None

    def request(self, run: Run) -> str:
        volume = run.noun.find(run.client, run.external_id) or {}
        is_used = volume.get("status") == "in-use"
        body = {"volume_id": run.external_id, "name": _backup_name(run), "force": is_used}
        return str(self.noun.create(run.client, body)["id"])

    def is_complete(self, snapshot: Mapping[str, Any] | None) -> bool:
        if snapshot is None or snapshot["status"].startswith("error"):
            reason = (snapshot or {}).get("fail_reason") or "it was deleted"
            raise CloudFailure(f"Failed to create the backup of the volume: {reason}", "ResourceInError")
        return bool(snapshot["status"] == "available")

    def create_volume(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        """
        Create a volume by restoring a backup, and return its id and representation; Cinder makes the volume as large as
        the backup's.
        """
        backup = run.specification["stoker:backup_id"]
        answer = run.client.request(
            VOLUME, "POST", f"/backups/{backup}/restore", {"restore": {"name": run.object.name}}
        )
        id = str(answer.json()["restore"]["volume_id"])
        run.client.request(VOLUME, "POST", f"/volumes/{id}/metadata", {"metadata": run.marker.metadata})
        return id, run.noun.find(run.client, id) or {}


def _image_name(run: Run) -> str:
    return f"{run.object.name}-snapshot"


def _backup_name(run: Run) -> str:
    """Return the name of a backup, which has the generation of the request."""
    return f"{run.marker.text}:{run.object.desired_generation}"


SERVER_IMAGES, VOLUME_BACKUPS = ServerImages(), VolumeBackups()
