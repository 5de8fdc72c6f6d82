"""Images of Glance, which Glance itself downloads from a URL (web-download)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker_openstack.cloud.client import IMAGE
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
    is_same,
    members_of,
    refuse_broken,
)
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.nouns import NOUNS
from stoker_openstack.model import CloudKind, CloudObject

_PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
_BROKEN = ("killed", "deleted", "pending_delete")
#: Note: the download was requested.
_IMPORTED = "imported"


class ImageDriver(Driver):
    """The driver of images."""

    kind, noun = CloudKind.IMAGE, NOUNS["image"]

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return self.noun.find_marked(run.client, run.marker, run.marker.metadata)

    def create(self, run: Run) -> Result:
        body = {**members_of(run.specification), **run.marker.metadata}
        created = run.client.request(IMAGE, "POST", "/images", body).json()
        run.record_created(created["id"], created)
        return self._download(run)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        refuse_broken(self, observed)
        if observed["status"] == "queued" and run.specification.get("stoker:location"):
            return Wait(self.noun.key, observed=observed) if run.progress.get(_IMPORTED) else self._download(run)
        if self.is_changing(observed):
            return Wait(self.noun.key, observed=observed)
        members = members_of(run.specification)
        changes = [
            {"op": "replace" if key in observed else "add", "path": f"/{key}", "value": value}
            for key, value in members.items()
            if not is_same(value, observed.get(key)) and key not in ("disk_format", "container_format", "id")
        ]
        if changes:
            path = f"/images/{run.external_id}"
            run.client.request(IMAGE, "PATCH", path, changes, headers=_PATCH)
        _set_members(run, observed)
        _set_active(run, observed)
        return Done(self.read(run))

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        return UNKNOWN_FAULT if observed["status"] in _BROKEN else None

    def is_changing(self, observed: Mapping[str, Any]) -> bool:
        return observed["status"] in ("importing", "saving", "uploading")

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Judgement:
        if observed is None:
            return DUE
        refuse_broken(self, observed)
        failure = observed.get("os_glance_failed_import")
        if observed["status"] == "queued" and failure:
            raise CloudFailure(f"Glance cannot download the image: the store {failure} failed", "ResourceInError")
        return DUE if observed["status"] in ("active", "deactivated") else STILL_WAITING

    def _download(self, run: Run) -> Result:
        location = run.specification.get("stoker:location")
        if not location:
            return Done(self.read(run))
        body = {"method": {"name": "web-download", "uri": location}}
        run.client.request(IMAGE, "POST", f"/images/{run.external_id}/import", body)
        run.note(**{_IMPORTED: True})
        return Wait(self.noun.key)


def _set_members(run: Run, image: Mapping[str, Any]) -> None:
    """Share the image with the projects of ``stoker:members``."""
    wanted = run.specification.get("stoker:members")
    if wanted is None or image.get("visibility") not in ("shared", "private"):
        return
    path = f"/images/{run.external_id}/members"
    present = {member["member_id"] for member in run.client.get(IMAGE, path)["members"]}
    for member in sorted(set(wanted) - present):
        run.client.request(IMAGE, "POST", path, {"member": member})
    for member in sorted(present - set(wanted)):
        run.client.discard(IMAGE, f"{path}/{member}")


def _set_active(run: Run, image: Mapping[str, Any]) -> None:
    is_active = run.specification.get("stoker:active")
    if is_active is not None and image["status"] == ("deactivated" if is_active else "active"):
        action = "reactivate" if is_active else "deactivate"
        run.client.request(IMAGE, "POST", f"/images/{run.external_id}/actions/{action}")
