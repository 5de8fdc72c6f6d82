"""What an operation does with a resource: its properties, the change that they require, and what returns or goes first.

A resource that an update replaces or removes stays until the clean-up, at the end of the update. If the update fails
before, its rollback makes the resource current again, as Heat does, and the replacement is deleted. An update that adds
a resource of the same name again makes it current again, too.

The removal of a deployment may run a script on its server. After the creation of what replaces the deployment there,
the script would take away what the creation has brought. Therefore, the step that creates a resource waits for the
removal of these predecessors, which otherwise belongs to the clean-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from enum import Enum, auto
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from stoker import hot
from stoker.hot import UNKNOWN, Definition
from stoker.hot.words import kind_of
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.model.stack import Action, Resource, Status, StepState
from stoker.resources import properties as schemas
from stoker.resources.base import USER, ResourceType, TakesBack
from stoker.resources.properties import PropertyError
from stoker.stacks.engine.session import LiveScope, StackSession

#: Parts of a definition, besides the properties, whose change requires an update.
_PARTS = ("metadata", "update_policy")


class ResourceChange(Enum):
    """What an apply step does with a resource."""

    CREATE = auto()
    #: No change, and the resource is complete.
    NOOP = auto()
    #: No change, and the resource is in progress: wait for it.
    AWAIT = auto()
    UPDATE = auto()
    #: The resource failed, and its type repeats in place what failed.
    RETRY = auto()
    REPLACE = auto()
    #: A rollback has returned to the resource that another one had replaced: the resource takes back what it gave up.
    RESTORE = auto()


class DesiredResource(Struct, frozen=True):
    """What an operation brings a resource to. Of a preview, ``properties`` and ``metadata`` may be UNKNOWN."""

    session: StackSession
    kind: ResourceType
    definition: Definition
    #: Checked against the type's schema, with ids in place of names.
    properties: dict[str, Any]
    metadata: Any

    @classmethod
    def of(cls, session: StackSession, definition: Definition, scope: hot.Scope | None = None) -> DesiredResource:
        """Evaluate all functions of a definition, by default with present resources. Raises StackValidationFailed."""
        kind, scope = session.engine.type(definition.type), scope or LiveScope(session)
        values = hot.evaluate(definition.properties, scope)
        try:
            checked = schemas.check(kind.properties, values)
        except PropertyError as error:
            raise StackValidationFailed(f"Property error: {error.describe('properties')}") from None
        session.engine.validate(kind, checked)
        properties = dict(kind.normalize(session.context, checked))
        metadata = evaluate_map(definition.metadata, scope, "metadata: ")
        if definition.update_policy:
            policy = evaluate_map(definition.update_policy, scope, "update_policy: ")
            definition = replace(definition, update_policy=policy)
        return cls(session, kind, definition, properties, metadata)

    def choose_change(self, resource: Resource | None) -> ResourceChange:
        """Return the change that brings ``resource`` to the definition."""
        if resource is None or resource.action is Action.INIT:
            return ResourceChange.CREATE
        if resource.type != self.definition.type:
            return ResourceChange.REPLACE
        changed = {name for name, value in self.properties.items() if resource.properties.get(name) != value}
        is_stale = self.kind.is_stale(self.session.context, resource)
        if self._must_replace(resource, changed, is_stale=is_stale):
            return ResourceChange.REPLACE
        if resource.status is Status.FAILED or (self.kind.is_nested and is_suspended(resource)):
            return ResourceChange.RETRY
        return self._choose_update(resource, changed, is_stale=is_stale)

    def _must_replace(self, resource: Resource, changed: Set[str], *, is_stale: bool) -> bool:
        """Return whether the resource cannot stay, or an update cannot change these properties in place."""
        schema = self.kind.properties or {}
        if not _can_continue(resource, self.kind):
            return True
        if any(name in schema and not schema[name].update_allowed for name in changed):
            return True
        return (is_stale or bool(changed)) and self.kind.must_replace(self.session.context, resource, self.properties)

    def _choose_update(self, resource: Resource, changed: Set[str], *, is_stale: bool) -> ResourceChange:
        """Return the change of a resource that stays. Settings alone do not change an action in progress."""
        definition, schema = self.definition, self.kind.properties or {}
        settings = {name for name in changed if name in schema and schema[name].is_setting}
        if is_stale or changed - settings or _other_parts(resource.definition) != _other_parts(definition.to_json()):
            return ResourceChange.UPDATE
        if resource.status is Status.IN_PROGRESS:
            return ResourceChange.AWAIT
        return ResourceChange.UPDATE if settings else ResourceChange.NOOP

    def choose_resource(self, resource: Resource | None) -> tuple[Resource | None, ResourceChange]:
        """
        Return the resource with which an operation continues, and what the operation does with it.

        This is the predecessor of ``resource``, if the predecessor can have the properties without a replacement. Only
        a rollback returns from a replacement.
        """
        session = self.session
        replacement = None if resource is None or resource.action is Action.INIT else resource
        change = self.choose_change(resource)
        is_rollback = session.stack.action is Action.ROLLBACK
        if replacement is not None and not (is_rollback and change is ResourceChange.REPLACE):
            return resource, change
        for predecessor in self._list_candidates():
            if replacement is None:
                if resource is not None:
                    session.resources.retire(resource)
                current = session.resources.change(replace(predecessor, current=True))
                return current, self.choose_change(current)
            if self.kind.may_return(predecessor, replacement):
                return self._return_from(replacement, predecessor)
        return resource, change

    def _return_from(self, replacement: Resource, predecessor: Resource) -> tuple[Resource, ResourceChange]:
        """Make the predecessor current again in place of its replacement. Return it, and its change."""
        passed = self.replace(replacement)
        restored = replace(predecessor, current=True, data={**predecessor.data, **passed})
        restored = self.session.resources.change(restored)
        if isinstance(self.kind, TakesBack):
            return restored, ResourceChange.RESTORE
        return restored, self.choose_change(restored)

    def replace(self, resource: Resource) -> Mapping[str, Any]:
        """Free the name of a resource for its replacement. Return entries for the replacement's data."""
        kind, session = self.kind, self.session
        is_of_type = resource.type == kind.name or resource.type in kind.aliases
        if not is_of_type or not isinstance(kind, TakesBack):
            session.resources.retire(resource)
            return {}
        kept, passed = kind.prepare_replacement(session.context, resource)
        session.resources.retire(replace(resource, data=kept))
        return passed

    def find_predecessors(self) -> list[str]:
        """Return the ids of the resources that have to be deleted first. They are no longer current."""
        session = self.session
        if session.stack.action in (Action.CREATE, Action.ADOPT):
            return []  # nothing goes
        return [
            id
            for id in self._list_predecessors()
            if (resource := session.resources.find_by_id(id)) is not None
            and (_goes(session, resource) if resource.name != self.definition.name else not resource.current)
        ]

    def _list_predecessors(self) -> Iterable[str]:
        return self.kind.predecessors(self.session.context, self.definition, self.properties)

    def _list_candidates(self) -> list[Resource]:
        """Return the predecessors that can have the properties without a replacement, the latest first."""
        if self.session.stack.action is Action.CREATE and self.session.stack.updated_at is None:
            return []  # nothing was replaced or removed yet, so no statement is needed
        return [
            predecessor
            for predecessor in self.session.resources.find_retired(self.definition.name)
            if _can_return(self.kind, predecessor) and self.choose_change(predecessor) is not ResourceChange.REPLACE
        ]

    def removes(self, resource: Resource) -> bool:
        """
        Return whether the step removes the incarnation ``resource`` from its place. A current one that its own step
        would replace later is retired now: resources may exchange their places.
        """
        if not resource.current:
            # the resource's own step makes the latest candidate current again
            candidates = self._list_candidates()
            return self.session.resources.find(resource.name) is not None or resource not in candidates[:1]
        if self.choose_change(resource) is not ResourceChange.REPLACE:
            return False
        if resource.id in self._list_predecessors():
            return False  # the replacement takes the same place, so its own step removes the resource
        self.session.resources.retire(resource)
        return True


def evaluate_map(source: Any, scope: hot.Scope, prefix: str = "") -> Any:
    """Return the value of a part of a definition, which may be UNKNOWN. Raises StackValidationFailed unless a map."""
    value = hot.evaluate(source, scope) if source else {}
    if value is not None and value is not UNKNOWN and not isinstance(value, dict):
        raise StackValidationFailed(f"{prefix}Value must be a map, not {kind_of(value)}")
    return {} if value is None else value


def _can_continue(resource: Resource, kind: ResourceType) -> bool:
    """Return whether the resource can stay. An unhealthy resource, and one that is being deleted, cannot."""
    if resource.status is Status.FAILED:
        return kind.retries and resource.action is not Action.CHECK
    return resource.action is not Action.DELETE


def is_suspended(resource: Resource) -> bool:
    """Return whether a RESUME has to complete before the resource can be updated."""
    return resource.action is Action.SUSPEND or (
        resource.action is Action.RESUME and resource.status is not Status.COMPLETE
    )


def _other_parts(definition: Mapping[str, Any]) -> list[Any]:
    return [definition.get(part) or {} for part in _PARTS]


def _can_return(kind: ResourceType, resource: Resource) -> bool:
    """
    Return whether the resource is as it was left, or its type can create it again in place.

    The deletion of such a resource may have failed: nothing deletes it after it has been created again.
    """
    if resource.action is Action.DELETE:
        return kind.repeats_update and resource.status is Status.FAILED
    return resource.status is Status.COMPLETE and resource.action is not Action.INIT


def _goes(session: StackSession, resource: Resource) -> bool:
    """Return whether the operation removes the resource from its place."""
    is_pending = session.plan.state(resource.name) is StepState.WAITING
    planned = session.plan.definition(resource.name) if is_pending else None
    if planned is None:
        return not resource.current
    try:
        desired = DesiredResource.of(session, Definition.from_json(planned))
    except StokerError:
        return not resource.current  # the resource's own step reports the error
    return desired.removes(resource)


#: Key in the data of a placeholder, which is a resource before its adoption: the object to take over.
TAKES = "takes"


def must_adopt(resource: Resource, kind: ResourceType) -> bool:
    """
    Return whether the next action is the adoption of a placeholder, or its repetition if the object is outside of
    Stoker: of another, an update after the failure creates a new object.
    """
    if resource.action is Action.ADOPT:
        return bool(kind.needs_provider) and resource.status is Status.FAILED
    return resource.action is Action.INIT and TAKES in resource.data


def take_adopted(resource: Resource, kind: ResourceType) -> Resource:
    """
    Return the resource with the data to take over, for its type to check. Store it only after the type has agreed.

    A resource whose type agreed before has the data already. Metadata is taken over, which has the signals of a handle,
    unless the type computes it.
    """
    if TAKES not in resource.data:
        return resource
    takes = resource.data[TAKES]
    data = {name: value for name, value in takes["data"].items() if name != USER}  # that of the former stack
    if USER in resource.data:
        data[USER] = resource.data[USER]
    metadata = resource.metadata if kind.has_live_metadata else {**takes["metadata"], **resource.metadata}
    return replace(resource, physical_id=takes["physical_id"], data=data, metadata=metadata)
