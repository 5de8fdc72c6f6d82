"""The cloud of one machine as the resource types use it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from stoker.model.errors import Conflict, EntityNotFound, StokerError
from stoker.model.stack import Status
from stoker.store.tx import Tx
from stoker_openstack.model import CloudAction, CloudKind, CloudObject
from stoker_openstack.simulated import machines, network
from stoker_openstack.simulated.project import REFERS, Kind, Project
from stoker_openstack.store import cloud_objects

_KINDS: Mapping[CloudKind, Kind] = {**network.KINDS, **machines.KINDS}
#: States of servers after actions.
_STATES = {CloudAction.SUSPEND: "SUSPENDED", CloudAction.RESUME: "ACTIVE"}
#: The key of the id of a snapshot, which has no data.
_SNAPSHOTS = {CloudKind.SERVER: "snapshot_image_id", CloudKind.VOLUME: "backup_id"}


@dataclass(frozen=True, slots=True)
class LocalCloud:
    """
    A cloud of rows; implements ``model.Cloud``. Every action ends in the transaction of its request.

    ``url`` is the public URL of this site, whose object store has the containers.
    """

    url: str

    def request(self, tx: Tx, wanted: CloudObject) -> CloudObject:
        """Apply the request. The returned object is COMPLETE, or FAILED with a reason."""
        before = cloud_objects.find(tx, wanted.id, for_update=True)
        project = Project(tx, wanted.project_id, self.url)
        requested = wanted.following(before)
        requested = replace(
            requested,
            status=Status.COMPLETE,
            observed_generation=requested.desired_generation,
            external_id=before.external_id if before else None,
        )
        try:
            if wanted.external_id is not None and before is None:
                requested = _take_over(project, requested, wanted.external_id)
            done = _apply(project, requested)
        except StokerError as error:
            done = replace(requested, status=Status.FAILED, reason=error.message)
        if wanted.action is CloudAction.DELETE and done.status is Status.COMPLETE:
            cloud_objects.delete(tx, wanted.id)
            return done
        (cloud_objects.add if before is None else cloud_objects.save)(tx, done)
        return self._relate(tx, done)

    def find(self, tx: Tx, id: str) -> CloudObject | None:
        """Return the object of a resource; None if there is none."""
        stored = cloud_objects.find(tx, id)
        return None if stored is None else self._relate(tx, stored)

    def forget(self, tx: Tx, id: str) -> None:
        """Keep the object: its row is all there is of it. A mere reference to another object is dropped."""
        stored = cloud_objects.find(tx, id)
        if stored is not None and REFERS in stored.arguments:
            cloud_objects.delete(tx, id)

    def _relate(self, tx: Tx, stored: CloudObject) -> CloudObject:
        """Return an object with the members that other objects have changed; a failed creation has none."""
        if not stored.observed:
            return stored
        project = Project(tx, stored.project_id, self.url)
        return replace(stored, observed={**stored.observed, **_KINDS[stored.kind].relate(project, stored)})


def _apply(project: Project, wanted: CloudObject) -> CloudObject:
    """Return the object after the action. Raises a kind of StokerError."""
    kind = _KINDS[wanted.kind]
    match wanted.action:
        case CloudAction.ENSURE | CloudAction.ADOPT:
            if kind.has_unique_name and any(
                other.name == wanted.name for other in project.of_kind(wanted.kind) if other.id != wanted.id
            ):
                raise Conflict(f"The {wanted.kind.replace('_', ' ')} {wanted.name} already exists.")
            wanted = replace(wanted, external_id=wanted.external_id or wanted.id)
            observed = kind.represent(project, wanted)
            return replace(wanted, external_id=kind.identify(wanted, observed), observed=observed)
        case CloudAction.DELETE:
            kind.remove(project, wanted)
        case CloudAction.SNAPSHOT:
            snapshot = {_SNAPSHOTS[wanted.kind]: wanted.id}
            return replace(wanted, observed={**wanted.observed, "stoker:snapshot": snapshot})
    state = _STATES.get(wanted.action)
    changes: dict[str, Any] = {"status": state} if state and wanted.kind is CloudKind.SERVER else {}
    return replace(wanted, observed={**wanted.observed, **changes})


def _take_over(project: Project, wanted: CloudObject, external_id: str) -> CloudObject:
    """
    Return the object with the id and the representation of an existing one.

    For ADOPT, the existing record, which no resource has any more, is deleted. Raises EntityNotFound.
    """
    existing = project.find(wanted.kind, external_id)
    if existing is None:
        raise EntityNotFound(f"The {wanted.kind.replace('_', ' ')} ({external_id}) could not be found.")
    taken = replace(wanted, external_id=existing.external_id, observed=existing.observed)
    if wanted.action is CloudAction.ADOPT:
        cloud_objects.delete(project.tx, existing.id)
        return taken
    return replace(taken, arguments={**wanted.arguments, REFERS: True})
