"""Images of servers: the snapshots of servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog

from stoker_openstack.cloud.client import IMAGE
from stoker_openstack.cloud.drivers.base import (
    ABANDONED,
    DUE,
    STILL_WAITING,
    Done,
    Judgement,
    Result,
    Run,
    Wait,
)
from stoker_openstack.cloud.drivers.server_request import send_action
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.markers import marker_of

_log = structlog.get_logger("stoker.backends")

#: The list in which images are polled; note: the id of the image that Nova creates.
IMAGES, _IMAGE_ID = "images", "image_id"
#: Key of an image's metadata: the generation of the server's row whose SNAPSHOT requested the image.
_GENERATION_KEY = "stoker-generation"
#: Note: the server is stored before its deletion.
STORED = "stored"


def create(run: Run, observed: Mapping[str, Any]) -> Result:
    """Create an image of the server, and wait for it."""
    _request(run)
    return _await(run, observed)


def store_before_deletion(run: Run) -> Result:
    """Create an image of a server that is to be deleted (deletion policy Snapshot); the next call deletes it."""
    _request(run)
    image_id = str(run.progress[_IMAGE_ID])
    if not judge(run.client.find(IMAGE, f"/images/{image_id}", "")).is_due:
        return Wait(IMAGES, "Waiting for the image of the server", polled_id=image_id)
    run.note(**{STORED: True, "polled_id": None})
    return Wait("servers")


def _request(run: Run) -> None:
    if not run.progress.get(_IMAGE_ID):
        image_id = _find(run)
        if image_id is None:
            name = run.object.arguments.get("name") or f"{run.object.name}-snapshot"
            metadata = {**run.marker.metadata, _GENERATION_KEY: str(run.object.desired_generation)}
            answer = send_action(run, {"createImage": {"name": name, "metadata": metadata}})
            image_id = str(answer.headers["Location"]).rpartition("/")[2]
        run.note(**{_IMAGE_ID: image_id})


def _find(run: Run) -> str | None:
    """Return the id of the image that an interrupted SNAPSHOT of this generation has requested."""
    current = (run.object.observed.get("stoker:snapshot") or {}).get("snapshot_image_id")
    name = run.object.arguments.get("name") or f"{run.object.name}-snapshot"
    for image in run.client.list(IMAGE, "/images", "images", query={"name": name}):
        if image.get("stoker-resource-id") == run.marker.resource_id and image["id"] != current:
            return str(image["id"])
    return None


def _await(run: Run, server: Mapping[str, Any]) -> Result:
    """Return the state of the image that SNAPSHOT creates."""
    image_id = str(run.progress[_IMAGE_ID])
    image = run.client.find(IMAGE, f"/images/{image_id}", "")
    judgement = judge(image)
    if judgement.is_due:
        return Done({**run.object.observed, **server, "stoker:snapshot": {"snapshot_image_id": image_id}})
    return Wait(IMAGES, polled_id=image_id)


def judge(image: Mapping[str, Any] | None) -> Judgement:
    """Decide what the state of a server's image means: due when the image is active."""
    if image is None or image["status"] in ("killed", "deleted"):
        raise CloudFailure("Failed to create the image of the server.", "Error")
    return DUE if image["status"] == "active" else STILL_WAITING


def delete(run: Run) -> Result:
    """Delete the image of an earlier SNAPSHOT."""
    run.client.discard(IMAGE, f"/images/{run.object.arguments['snapshot_image_id']}")
    return Done()


def delete_abandoned(run: Run) -> None:
    """Delete the images of snapshots that a newer request superseded. An image that Glance protects stays."""
    generations = {str(generation) for generation in run.progress.get(ABANDONED) or ()}
    if not generations:
        return
    for image in run.client.list(IMAGE, "/images", "images", query=run.marker.metadata):
        if marker_of(image) == run.marker and image.get(_GENERATION_KEY) in generations:
            try:
                run.client.discard(IMAGE, f"/images/{image['id']}")
            except CloudRefused as error:
                if error.status == 409:
                    raise
                _log.warning("cloud_object.image_kept", external_id=image["id"], error=str(error))
    run.note(**{ABANDONED: None})
