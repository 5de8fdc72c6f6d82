"""Attachments of volumes to servers, which Nova carries out; the state of the volume tells their progress."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from stoker_openstack.cloud.client import COMPUTE
from stoker_openstack.cloud.drivers.base import DUE, STILL_WAITING, Done, Driver, Judgement, Result, Run, Wait
from stoker_openstack.cloud.errors import CloudFailure, CloudRefused
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudAction, CloudKind, CloudObject

#: States of the volume that pass.
_VOLUME = NOUNS["volume"]
_TRANSIENT = ("attaching", "reserved", "detaching", "creating", "downloading", "extending", "backing-up", "retyping")


class VolumeAttachmentDriver(Driver):
    """The driver of attachments. The external id is the volume's, as in Nova."""

    kind, noun = CloudKind.VOLUME_ATTACHMENT, Noun("VolumeAttachment", COMPUTE)

    def may_pass(self, run: Run, error: CloudRefused) -> bool:
        return error.status == 409 or (error.status == 400 and "status" in str(error))

    def read(self, run: Run) -> Mapping[str, Any] | None:
        present = run.object.observed or self._resolve(run)
        return self._find(run, str(present["serverId"]), str(present["volumeId"]))

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        wanted = self._resolve(run)
        return self._find(run, wanted["serverId"], wanted["volumeId"])

    def create(self, run: Run) -> Result:
        wanted = self._resolve(run)
        body = {"volumeId": wanted["volumeId"]}
        if run.specification.get("device"):
            body["device"] = run.specification["device"]
        path = f"/servers/{wanted['serverId']}/os-volume_attachments"
        answer = run.client.request(COMPUTE, "POST", path, {"volumeAttachment": body})
        created = {**wanted, **answer.json()["volumeAttachment"]}
        run.record_created(str(created["id"]), created)
        return self._wait(run, created)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted = self._resolve(run)
        if (observed["serverId"], observed["volumeId"]) != (wanted["serverId"], wanted["volumeId"]):
            self.delete(run)
            raise CloudFailure("An attachment cannot be changed to another server or volume.", "NotSupported")
        return self._settle(run, observed)

    def delete(self, run: Run) -> Result:
        observed = run.object.observed
        path = f"/servers/{observed['serverId']}/os-volume_attachments/{observed['volumeId']}"
        run.client.request(COMPUTE, "DELETE", path)
        return self._wait(run, observed)

    def check(self, run: Run, observed: Mapping[str, Any]) -> Result:
        return self._settle(run, observed)

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Judgement:
        """Decide by the volume's state; ``observed`` is the volume."""
        if observed is None:
            return DUE
        if item.action is CloudAction.DELETE:
            return STILL_WAITING if observed["status"] == "detaching" else DUE
        if observed["status"] == "error":
            raise CloudFailure("Volume attachment failed: the volume went to status error", "ResourceUnknownStatus")
        return STILL_WAITING if observed["status"] in _TRANSIENT else DUE

    def _settle(self, run: Run, observed: Mapping[str, Any]) -> Result:
        volume = _VOLUME.find(run.client, observed["volumeId"])
        status = volume["status"] if volume else "missing"
        if status == "in-use":
            return Done({**run.object.observed, **observed})
        if status in _TRANSIENT:
            return self._wait(run, observed)
        raise CloudFailure(f"Volume attachment failed - Unknown status {status}", "ResourceUnknownStatus")

    def _wait(self, run: Run, observed: Mapping[str, Any]) -> Wait:
        return Wait(_VOLUME.key, polled_id=str(observed["volumeId"]))

    def _resolve(self, run: Run) -> dict[str, str]:
        return {
            "serverId": run.names.resolve("server", str(run.specification["server_id"])),
            "volumeId": run.names.resolve("volume", str(run.specification["volume_id"])),
        }

    def _find(self, run: Run, server: str, volume: str) -> Mapping[str, Any] | None:
        path = f"/servers/{server}/os-volume_attachments/{volume}"
        return run.client.find(COMPUTE, path, "volumeAttachment")
