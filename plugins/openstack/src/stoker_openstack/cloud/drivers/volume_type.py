"""Types of volumes and their encryption, which only administrators may create."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker_openstack.cloud.client import VOLUME
from stoker_openstack.cloud.drivers.base import Done, Driver, Result, Run, body_of, is_same, texts_of
from stoker_openstack.cloud.nouns import NOUNS, Noun
from stoker_openstack.model import CloudKind

_PUBLIC, _SPECS, _PROJECTS = "os-volume-type-access:is_public", "extra_specs", "stoker:projects"
_TEXTS = ("name", "description")


class VolumeTypeDriver(Driver):
    """The driver of volume types. Without a description by the user, the description is the marker."""

    kind, noun = CloudKind.VOLUME_TYPE, NOUNS["volume_type"]

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        return self.noun.find_marked(run.client, run.marker, {"is_public": "None"})

    def create(self, run: Run) -> Result:
        wanted = run.specification
        body = {
            "name": wanted["name"],
            "description": run.marker.text,
            _PUBLIC: wanted["is_public"],
            _SPECS: texts_of(wanted[_SPECS]),
        }
        created = run.client.request(VOLUME, "POST", "/types", {"volume_type": body}).json()["volume_type"]
        run.record_created(str(created["id"]), created)
        return self.update(run, created)

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        wanted = {**run.specification, "description": run.specification.get("description") or run.marker.text}
        changes = {name: wanted[name] for name in _TEXTS if wanted[name] != observed.get(name)}
        if bool(wanted["is_public"]) != bool(observed.get("is_public", observed.get(_PUBLIC))):
            changes["is_public"] = wanted["is_public"]
        if changes:
            run.client.request(VOLUME, "PUT", _path(run), {"volume_type": changes})
        _set_specs(run, texts_of(wanted[_SPECS]), observed.get(_SPECS) or {})
        if not wanted["is_public"]:
            _set_projects(run, [str(name) for name in wanted.get(_PROJECTS) or ()])
        return Done(self.read(run))


class VolumeEncryptionDriver(Driver):
    """The driver of the encryption of volume types. The external id is the volume type's, as in Heat."""

    kind, noun = CloudKind.VOLUME_ENCRYPTION, Noun("EncryptedVolumeType", VOLUME)

    def read(self, run: Run) -> Mapping[str, Any] | None:
        return _find_encryption(run, run.external_id)

    def find_created(self, run: Run) -> Mapping[str, Any] | None:
        volume_type = self._volume_type(run)
        present = _find_encryption(run, volume_type)
        return {**present, "id": volume_type} if present else None

    def create(self, run: Run) -> Result:
        volume_type = self._volume_type(run)
        path, body = f"/types/{volume_type}/encryption", {"encryption": self._body(run)}
        created = run.client.request(VOLUME, "POST", path, body).json()["encryption"]
        run.record_created(volume_type, created)
        return Done(self.read(run))

    def update(self, run: Run, observed: Mapping[str, Any]) -> Result:
        changes = {name: value for name, value in self._body(run).items() if not is_same(value, observed.get(name))}
        if changes:
            path = f"{_path(run)}/encryption/{observed['encryption_id']}"
            run.client.request(VOLUME, "PUT", path, {"encryption": changes})
        return Done(self.read(run))

    def delete(self, run: Run) -> Result:
        present = self.read(run)
        if present is not None:
            run.client.request(VOLUME, "DELETE", f"{_path(run)}/encryption/{present['encryption_id']}")
        return Done(is_gone=True)

    def _body(self, run: Run) -> dict[str, Any]:
        body = body_of(run.specification)
        del body["volume_type"]
        return body

    def _volume_type(self, run: Run) -> str:
        return run.names.resolve("volume_type", str(run.specification["volume_type"]))


def _path(run: Run) -> str:
    return f"/types/{run.external_id}"


def _find_encryption(run: Run, volume_type: str) -> Mapping[str, Any] | None:
    """Return the encryption of a type; Cinder represents a missing one by an empty object."""
    present = run.client.find(VOLUME, f"/types/{volume_type}/encryption", "")
    return present if present and present.get("encryption_id") else None


def _set_specs(run: Run, wanted: Mapping[str, str], present: Mapping[str, str]) -> None:
    path = f"{_path(run)}/{_SPECS}"
    for name in present.keys() - wanted.keys():
        run.client.discard(VOLUME, f"{path}/{name}")
    changes = {name: value for name, value in wanted.items() if present.get(name) != value}
    if changes:
        run.client.request(VOLUME, "POST", path, {_SPECS: changes})


def _set_projects(run: Run, names: list[str]) -> None:
    """Let exactly these projects use a type that is not public."""
    wanted = {run.names.resolve("project", name) for name in names}
    entries = run.client.get(VOLUME, f"{_path(run)}/os-volume-type-access")["volume_type_access"]
    present = {str(entry["project_id"]) for entry in entries}
    for action, projects in (("removeProjectAccess", present - wanted), ("addProjectAccess", wanted - present)):
        for project in sorted(projects):
            run.client.request(VOLUME, "POST", f"{_path(run)}/action", {action: {"project": project}})
