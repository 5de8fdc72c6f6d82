"""What an operation does with a resource: its properties, the change that they require, and what returns or goes first.

A resource that an update replaces or removes stays until the clean-up, at the end of the update. If the update fails
before, its rollback makes the resource current again, as Heat does, and the replacement is deleted. An update that adds
a resource of the same name again makes it current again, too.

The removal of a deployment may run a script on its server. After the creation of what replaces the deployment there,
the script would take away what the creation has brought. Therefore, the step that creates a resource waits for the
removal of these predecessors, which otherwise belongs to the clean-up.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from msgspec.structs import replace

from stoker import hot
from stoker.hot import Definition
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources import properties as schemas
from stoker.resources.base import USER, ResourceType, TakesBack
from stoker.resources.properties import PropertyError
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.scope import LiveScope

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


def decide(
    resource: Resource | None,
    kind: ResourceType,
    definition: Definition,
    properties: Mapping[str, Any],
    *,
    stale: bool = False,
    must_replace: bool = False,
) -> ResourceChange:
    """
    Return the change that brings ``resource`` to ``definition``.

    ``properties`` are the evaluated new properties. ``stale``: other inputs of the resource have changed.
    ``must_replace``: the type cannot apply the new properties in place.
    """
    if resource is None or resource.action is Action.INIT:
        return ResourceChange.CREATE
    schema = kind.properties or {}
    changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
    if (
        resource.type != definition.type
        or must_replace
        or not _can_continue(resource, kind)
        or any(name in schema and not schema[name].update_allowed for name in changed)
    ):
        return ResourceChange.REPLACE
    if resource.status is Status.FAILED or (kind.is_nested and is_suspended(resource)):
        return ResourceChange.RETRY
    settings = {name for name in changed if name in schema and schema[name].is_setting}
    if stale or changed - settings or _other_parts(resource.definition) != _other_parts(definition.to_json()):
        return ResourceChange.UPDATE
    if resource.status is Status.IN_PROGRESS:
        return ResourceChange.AWAIT
    return ResourceChange.UPDATE if settings else ResourceChange.NOOP


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


def evaluate_properties(
    session: StackSession, kind: ResourceType, definition: Definition, scope: hot.Scope
) -> dict[str, Any]:
    """
    Return the properties with all functions evaluated, checked against the type's schema, with ids in place of names.

    Raises StackValidationFailed.
    """
    values = hot.evaluate(definition.properties, scope)
    try:
        checked = schemas.check(kind.properties, values)
    except PropertyError as error:
        raise StackValidationFailed(f"Property error: {error.describe('properties')}") from None
    # Values of other resources were unknown when the template was checked.
    kind.validate(checked)
    return dict(kind.normalize(session.context, checked))


def choose_change(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: Mapping[str, Any],
) -> ResourceChange:
    """Return the change that an operation makes to ``resource``; ``properties`` may be UNKNOWN in a preview."""
    stale = must_replace = False
    if resource is not None and resource.action is not Action.INIT and resource.type == definition.type:
        stale = kind.is_stale(session.context, resource)
        if stale or any(resource.properties.get(name) != value for name, value in properties.items()):
            must_replace = kind.must_replace(session.context, resource, properties)
    return decide(resource, kind, definition, properties, stale=stale, must_replace=must_replace)


def replace_current(session: StackSession, kind: ResourceType, resource: Resource) -> Mapping[str, Any]:
    """Free the name of a resource for its replacement. Return entries for the replacement's data."""
    is_of_type = resource.type == kind.name or resource.type in kind.aliases
    if not is_of_type or not isinstance(kind, TakesBack):
        session.resources.retire(resource)
        return {}
    kept, passed = kind.prepare_replacement(session.context, resource)
    session.resources.retire(replace(resource, data=kept))
    return passed


def choose_resource(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: Mapping[str, Any],
) -> tuple[Resource | None, ResourceChange]:
    """
    Return the resource with which an operation continues, and what the operation does with it.

    This is the predecessor of ``resource``, if the predecessor can have the properties without a replacement. Only a
    rollback returns from a replacement.
    """
    replacement = None if resource is None or resource.action is Action.INIT else resource
    change = choose_change(session, kind, definition, resource, properties)
    is_rollback = session.stack.action is Action.ROLLBACK
    if replacement is not None and not (is_rollback and change is ResourceChange.REPLACE):
        return resource, change
    for predecessor in list_candidates(session, kind, definition, properties):
        if replacement is None:
            if resource is not None:
                session.resources.retire(resource)
            current = session.resources.change(replace(predecessor, current=True))
            return current, choose_change(session, kind, definition, current, properties)
        if kind.may_return(predecessor, replacement):
            passed = replace_current(session, kind, replacement)
            restored = replace(predecessor, current=True, data={**predecessor.data, **passed})
            restored = session.resources.change(restored)
            if isinstance(kind, TakesBack):
                return restored, ResourceChange.RESTORE
            return restored, choose_change(session, kind, definition, restored, properties)
    return resource, change


def list_candidates(
    session: StackSession, kind: ResourceType, definition: Definition, properties: Mapping[str, Any]
) -> list[Resource]:
    """Return the predecessors that can have the properties without a replacement, the latest first."""
    if session.stack.action is Action.CREATE and session.stack.updated_at is None:
        return []  # nothing was replaced or removed yet, so no statement is needed
    return [
        predecessor
        for predecessor in session.resources.find_retired(definition.name)
        if _can_return(kind, predecessor)
        and choose_change(session, kind, definition, predecessor, properties) is not ResourceChange.REPLACE
    ]


def _can_return(kind: ResourceType, resource: Resource) -> bool:
    """
    Return whether the resource is as it was left, or its type can create it again in place.

    The deletion of such a resource may have failed: nothing deletes it after it has been created again.
    """
    if resource.action is Action.DELETE:
        return kind.repeats_update and resource.status is Status.FAILED
    return resource.status is Status.COMPLETE and resource.action is not Action.INIT


def find_predecessors(
    session: StackSession, kind: ResourceType, definition: Definition, properties: Mapping[str, Any]
) -> list[str]:
    """Return the ids of the resources that have to be deleted first. They are no longer current."""
    if session.stack.action in (Action.CREATE, Action.ADOPT):
        return []  # nothing goes
    return [
        id
        for id in kind.predecessors(session.context, definition, properties)
        if (resource := session.resources.find_by_id(id)) is not None
        and (_goes(session, resource) if resource.name != definition.name else not resource.current)
    ]


def _goes(session: StackSession, resource: Resource) -> bool:
    """
    Return whether the operation removes the resource from its place.

    A current resource whose own step would replace it later is retired now: resources may exchange their places.
    """
    planned = session.plan.definition(resource.name) if session.plan.is_pending(resource.name) else None
    if planned is None:
        return not resource.current
    definition = Definition.from_json(planned)
    kind = session.engine.type(definition.type)
    try:
        properties = evaluate_properties(session, kind, definition, LiveScope(session))
    except StokerError:
        return not resource.current  # the resource's own step reports the error
    if not resource.current:
        # the resource's own step makes the latest candidate current again
        candidates = list_candidates(session, kind, definition, properties)
        return session.resources.find(resource.name) is not None or resource not in candidates[:1]
    if choose_change(session, kind, definition, resource, properties) is not ResourceChange.REPLACE:
        return False
    if resource.id in kind.predecessors(session.context, definition, properties):
        return False  # the replacement takes the same place, so its own step removes the resource
    session.resources.retire(resource)
    return True


#: Key in the data of a placeholder, which is a resource before its adoption: the object to take over.
TAKES = "takes"


def must_adopt(resource: Resource, kind: ResourceType) -> bool:
    """
    Return whether the next action on the resource is its adoption, because it is a placeholder or the adoption failed.

    If the object exists in Stoker only, an update after the failure creates another object.
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
