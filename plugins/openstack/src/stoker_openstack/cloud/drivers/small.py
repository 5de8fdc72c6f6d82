"""Key pairs, images, containers and secrets: objects that refer to no others."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import quote

from stoker_openstack.cloud.client import KEY_MANAGER, OBJECT_STORE, suppressing
from stoker_openstack.cloud.drivers.base import (
    STILL_WAITING,
    Done,
    Driver,
    Result,
    Run,
    Wait,
    await_stable,
    differences,
    members_of,
)
from stoker_openstack.cloud.errors import CloudFailure
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudKind, CloudObject, body_of


class KeypairDriver(Driver):
    """The driver of key pairs."""

    kind, noun = CloudKind.KEYPAIR, NOUNS["keypair"]

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        """Return the key pair of an interrupted request: that with the name and the key of the specification."""
        match = self.noun.find(run.client, run.name)
        wanted = str(run.specification["public_key"]).strip()
        return match if match is not None and match["public_key"].strip() == wanted else None

    def body(self, run: Run) -> dict[str, Any]:
        return {**body_of(run.specification), "name": run.name}


_PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
#: Note: the download was requested.
_IMPORTED = "imported"


class ImageDriver(Driver):
    """The driver of images."""

    kind, noun = CloudKind.IMAGE, NOUNS["image"]
    broken, changing = ("killed", "deleted", "pending_delete"), ("importing", "saving", "uploading")

    def body(self, run: Run) -> dict[str, Any]:
        return {**members_of(run.specification), **run.marker.metadata}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if wait := await_stable(self, observed):
            return wait
        location = run.specification.get("stoker:location")
        if observed["status"] == "queued" and location:
            if not run.progress.get(_IMPORTED):
                run.send("POST", "/import", {"method": {"name": "web-download", "uri": location}})
                run.note(**{_IMPORTED: True})
            return Wait(self.noun.key, observed=observed)
        changes = [
            {"op": "replace" if key in observed else "add", "path": f"/{key}", "value": value}
            for key, value in differences(members_of(run.specification), observed).items()
            if key not in ("disk_format", "container_format", "id")
        ]
        if changes:
            run.send("PATCH", body=changes, headers=_PATCH)
        _set_members(run, observed)
        _set_active(run, observed)
        return Done(self.read(run))

    def judge(self, item: CloudObject, observed: Mapping[str, Any] | None, now: datetime) -> Result | None:
        if observed is None or observed["status"] != "queued":
            return super().judge(item, observed, now)
        if failure := observed.get("os_glance_failed_import"):
            raise CloudFailure(f"Glance cannot download the image: the store {failure} failed", "ResourceInError")
        return STILL_WAITING


def _set_members(run: Run, image: Mapping[str, Any]) -> None:
    """Share the image with the projects of ``stoker:members``."""
    wanted = run.specification.get("stoker:members")
    if wanted is None or image.get("visibility") not in ("shared", "private"):
        return
    present = {member["member_id"] for member in run.send("GET", "/members").json()["members"]}
    for member in sorted(set(wanted) - present):
        run.send("POST", "/members", {"member": member})
    for member in sorted(present - set(wanted)):
        with suppressing(404):
            run.send("DELETE", f"/members/{member}")


def _set_active(run: Run, image: Mapping[str, Any]) -> None:
    is_active = run.specification.get("stoker:active")
    if is_active is not None and image["status"] == ("deactivated" if is_active else "active"):
        run.send("POST", f"/actions/{'reactivate' if is_active else 'deactivate'}")


_MARKER = "x-container-meta-stoker"


class ContainerDriver(Driver):
    """The driver of containers."""

    kind, noun = CloudKind.CONTAINER, Noun("Container", OBJECT_STORE)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return _head(run, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        headers = _head(run, run.name)
        return {**headers, "id": run.name} if headers and headers.get(_MARKER) == run.marker.text else None

    def request(self, run: Run) -> tuple[str, Mapping[str, Any]]:
        _put(run, run.name)
        return run.name, _head(run, run.name) or {}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        if differences(_headers(run), observed):
            _put(run, run.external_id)
        if account := run.specification["stoker:account_headers"]:
            run.client.request(OBJECT_STORE, "POST", "", headers=account)
        return Done(_head(run, run.external_id))

    def delete(self, run: Run) -> None:
        path = _path(run.external_id)
        if run.specification.get("stoker:purge_on_delete"):
            for entry in run.client.get(OBJECT_STORE, f"{path}?format=json"):
                with suppressing(404):
                    run.client.request(OBJECT_STORE, "DELETE", f"{path}/{quote(str(entry['name']))}")
        run.client.request(OBJECT_STORE, "DELETE", path)


def _path(name: str) -> str:
    return f"/{quote(name, safe='')}"


def _headers(run: Run) -> dict[str, str]:
    return {**run.specification["headers"], _MARKER: run.marker.text}


def _put(run: Run, name: str) -> None:
    """Create the container or change its headers."""
    run.client.request(OBJECT_STORE, "PUT", _path(name), headers=_headers(run))


def _head(run: Run, name: str) -> dict[str, Any] | None:
    with suppressing(404):
        answer = run.client.request(OBJECT_STORE, "HEAD", _path(name))
        return {**{key.lower(): value for key, value in answer.headers.items()}, "stoker:url": answer.url}
    return None


class SecretDriver(Driver):
    """
    The driver of secrets. The external id is the ``secret_ref``, as in Heat.

    Barbican has neither unique names nor metadata at the creation. Therefore a secret whose request was interrupted is
    recognized by its name and time.
    """

    kind, noun = CloudKind.SECRET, Noun("Secret", KEY_MANAGER, "/secrets", id_key="secret_ref")

    def read(self, run: Run) -> Mapping[str, Any] | None:
        secret = self.noun.find(run.client, _id(run))
        return {**secret, "secret_ref": run.external_id} if secret else None

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        name, sent_at = run.name, str(run.progress["sent_at"])[:19]
        query = {"name": name, "created": f"gte:{sent_at}"}
        secrets: list[dict[str, Any]] = run.client.get(KEY_MANAGER, "/secrets", query=query)["secrets"]
        return secrets[0] if secrets else None

    def body(self, run: Run) -> dict[str, Any]:
        return {**members_of(run.specification), "name": run.name}

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        return self.check(run, self.read(run) or observed)

    def fault_of(self, observed: Mapping[str, Any]) -> str | None:
        return f'"{observed.get("error_reason") or "Unknown"}"' if observed.get("status") == "ERROR" else None

    def delete(self, run: Run) -> None:
        self.noun.delete(run.client, _id(run))


def _id(run: Run) -> str:
    return run.external_id.rstrip("/").rpartition("/")[2]
