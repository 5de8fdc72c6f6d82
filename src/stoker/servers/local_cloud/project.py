"""The objects of one project during one request, and what the handlers of all kinds need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol
from uuid import UUID, uuid5

from stoker.model.cloud import CloudAction, CloudKind, CloudObject
from stoker.model.errors import Invalid
from stoker.model.status import Status
from stoker.objects import Objects
from stoker.store import cloud_objects
from stoker.store.tx import Tx

#: Namespace of the ids of objects that no template creates.
_NAMESPACE = UUID("0d2fbd34-6c0a-4b4e-9d2c-3f0c0d7e51aa")
#: Key of ``arguments`` for the record of an object that belongs to another resource or to none (``external_id``).
REFERS = "refers"
#: Key of ``arguments`` for the id of the object of which another one is a part.
PART_OF = "part_of"


@dataclass(frozen=True, slots=True)
class Project:
    """A project in one transaction. ``url`` is the public URL of this site."""

    tx: Tx
    id: str
    objects: Objects
    url: str

    def find(self, kind: CloudKind, ref: str) -> CloudObject | None:
        """Return the project's object with this id at the cloud or this name; None if there is none."""
        matches = cloud_objects.of_external_id(self.tx, self.id, kind, ref)
        matches = matches or cloud_objects.of_name(self.tx, self.id, kind, ref)
        own = [match for match in matches if REFERS not in match.arguments]
        return own[0] if own else None

    def require(self, kind: CloudKind, ref: str) -> CloudObject:
        """Return the object with this id or name. Raises Invalid if no template has created it."""
        match = self.find(kind, ref)
        if match is None:
            raise Invalid(f"{kind.replace('_', ' ').capitalize()} {ref} could not be found.")
        return match

    def resolve(self, kind: CloudKind | str, ref: str) -> str:
        """Return the id of the object with this name or id. An object that no template creates gets a fixed id."""
        match = self.find(kind, ref) if isinstance(kind, CloudKind) else None
        if match is not None and match.external_id is not None:
            return match.external_id
        try:
            return str(UUID(ref))
        except ValueError:
            return str(uuid5(_NAMESPACE, f"{self.id}/{kind}/{ref}"))

    def save(self, changed: CloudObject, **observed: Any) -> CloudObject:
        """Write changes of an object's representation."""
        changed = replace(changed, observed={**changed.observed, **observed})
        cloud_objects.save(self.tx, changed)
        return changed

    def add_part(self, whole: CloudObject, kind: CloudKind, key: str, specification: Mapping[str, Any]) -> CloudObject:
        """Return a new object that belongs to ``whole``, such as the port of a server. It is not yet stored."""
        id = part_id(whole, key)
        return CloudObject(
            id=id,
            kind=kind,
            project_id=self.id,
            root_id=whole.root_id,
            name=str(specification.get("name") or ""),
            specification=specification,
            action=CloudAction.ENSURE,
            arguments={PART_OF: whole.external_id},
            status=Status.COMPLETE,
            reason="",
            desired_generation=1,
            observed_generation=1,
            external_id=id,
            observed={},
        )


def part_id(whole: CloudObject, key: str) -> str:
    """Return the id of a part of an object."""
    return str(uuid5(_NAMESPACE, f"{whole.external_id} {key}"))


class Handler(Protocol):
    """Represents and deletes the objects of one kind. Raises a kind of Invalid for an impossible specification."""

    def ensure(self, project: Project, wanted: CloudObject) -> Mapping[str, Any]:
        """
        Return the representation of an object by the service.

        ``wanted.observed`` is the former representation; empty for a new object.
        """
        ...

    def delete(self, project: Project, gone: CloudObject) -> None:
        """Remove what depends on the object. The caller removes the object itself."""
        ...

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        """Return the id of an object at the cloud."""
        ...


class PlainHandler:
    """Objects whose id is that of their resource, and on which nothing depends."""

    def delete(self, project: Project, gone: CloudObject) -> None:
        """Do nothing: nothing depends on the object."""

    def external_id(self, project: Project, wanted: CloudObject) -> str:
        return wanted.id
