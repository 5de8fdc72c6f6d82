"""The objects of one project during one request, and how a kind of objects is described."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid5

from msgspec.structs import replace

from stoker.model.errors import Invalid
from stoker.store.tx import Tx
from stoker_openstack.model import CloudKind, CloudObject, body_of
from stoker_openstack.store import cloud_objects

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
    url: str

    def find(self, kind: CloudKind, ref: str | None) -> CloudObject | None:
        """Return the project's object with this id at the cloud or this name; None if there is none."""
        if not ref:
            return None
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

    def of_kind(self, kind: CloudKind) -> list[CloudObject]:
        """Return all objects of a kind."""
        return [item for item in cloud_objects.of_kind(self.tx, self.id, kind) if REFERS not in item.arguments]


def part_id(whole: CloudObject, key: str) -> str:
    """Return the id of a part of an object."""
    return str(uuid5(_NAMESPACE, f"{whole.external_id} {key}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """
    How the cloud represents the objects of one kind.

    A later source overrides an earlier one, in this order: ``defaults``, the specification, the ids and names of all
    objects, ``derive``.
    """

    #: Members with the values that they have unless the specification says otherwise.
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: Members of the specification that are not shown.
    hidden: Collection[str] = ()
    #: Whether the computed members are all.
    is_computed: bool = False
    #: Whether the name identifies an object.
    has_unique_name: bool = False
    #: Returns the computed members. Raises a kind of Invalid for an impossible specification.
    derive: Callable[[Project, CloudObject], Mapping[str, Any]] = lambda _project, _wanted: {}
    #: Returns the members that other objects have changed, whenever an object is read. They are not stored.
    relate: Callable[[Project, CloudObject], Mapping[str, Any]] = lambda _project, _stored: {}
    #: Removes what depends on an object. The caller removes the object.
    remove: Callable[[Project, CloudObject], None] = lambda _project, _gone: None
    #: Returns the id of an object at the cloud from the object and its representation.
    identify: Callable[[CloudObject, Mapping[str, Any]], str] = lambda wanted, _: str(wanted.external_id)

    def represent(self, project: Project, wanted: CloudObject) -> dict[str, Any]:
        """Return an object as its service shows it; ``wanted.observed`` is the former representation, if any."""
        derived = dict(self.derive(project, wanted))
        if self.is_computed:
            return derived
        shown = {name: value for name, value in body_of(wanted.specification).items() if name not in self.hidden}
        common = {"id": wanted.external_id, "name": wanted.name, "tenant_id": project.id, "project_id": project.id}
        return {**self.defaults, **shown, **common, **derived}
