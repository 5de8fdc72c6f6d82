"""Steps of the apply phase, which bring resources to their definitions in the template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker import hot
from stoker.hot import Definition
from stoker.hot.words import kind_of
from stoker.model.errors import (
    EntityNotFound,
    NotSupported,
    ResourceActionRestricted,
    StackValidationFailed,
    StokerError,
)
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources import properties as schemas
from stoker.resources.base import Outcome, Replace, ResourceFailure, ResourceType
from stoker.resources.properties import PropertyError
from stoker.stacks import adoption
from stoker.stacks.engine import breakpoints, reinstatement
from stoker.stacks.engine.changes import ResourceChange, decide
from stoker.stacks.engine.resource_actions import begin, fail, finish_action, refuse
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.scope import LiveScope


def apply_step(session: StackSession, name: str, *, past_hook: bool = False) -> bool:
    """
    Run the step of the resource called ``name``.

    Return True if the step is done. Return False if the step waits for a report, or failed together with the operation.
    ``past_hook``: a breakpoint before the step has been cleared.
    """
    planned = session.plan.definition(name)
    assert planned is not None, name
    definition = Definition.from_json(planned)
    if definition.is_frozen:
        return True
    kind = session.engine.type(definition.type)
    resource = session.resources.find(name)
    try:
        scope = LiveScope(session)
        properties = resolve(kind, definition, scope)
        metadata = _map(definition, "metadata", scope)
        definition = replace(definition, update_policy=_map(definition, "update_policy", scope))
    except StokerError as error:
        exists = resource is not None and resource.action is not Action.INIT
        fail(session, begin(session, resource, definition, Action.UPDATE if exists else Action.CREATE), error)
        return False
    if definition.external_id is not None:
        return _take_external(session, kind, definition, resource, properties)
    if session.stack.action is Action.ROLLBACK:
        resource, must_restore = reinstatement.reinstate(session, kind, definition, resource, properties)
    else:
        must_restore = False
    stale = resource is not None and resource.action is not Action.INIT and kind.is_stale(session.context, resource)
    deed = ResourceChange.RESTORE if must_restore else decide(resource, kind, definition, properties, stale=stale)
    if not past_hook and deed is not ResourceChange.AWAIT and _must_wait(session, definition, deed, resource):
        return False
    if deed in (ResourceChange.NOOP, ResourceChange.AWAIT) and resource is not None:
        session.resources.change(
            replace(resource, definition=definition.to_json(), requires=session.resources.requirements(definition))
        )
        if deed is ResourceChange.AWAIT:
            session.plan.start(name)
        return deed is ResourceChange.NOOP
    return _act(session, kind, definition, deed, resource, properties, metadata)


def _map(definition: Definition, part: str, scope: hot.Scope) -> dict[str, Any]:
    value = hot.evaluate(getattr(definition, part), scope)
    if value is not None and not isinstance(value, dict):
        raise StackValidationFailed(f"{part}: Value must be a map, not {kind_of(value)}")
    return value or {}


def _must_wait(
    session: StackSession, definition: Definition, change: ResourceChange, resource: Resource | None
) -> bool:
    """Apply restrictions and breakpoints of the environment. Return whether the step must not continue."""
    restricted = {ResourceChange.UPDATE: "update", ResourceChange.REPLACE: "replace"}.get(change)
    if resource is not None and restricted in definition.restricted_actions:
        refuse(session, resource, ResourceActionRestricted(f"{restricted} is restricted for resource."))
        return True
    # As in Heat, a breakpoint before an update also stops resources without changes.
    action = (
        Action.UPDATE
        if change in (ResourceChange.NOOP, ResourceChange.UPDATE, ResourceChange.REPLACE)
        else Action.CREATE
    )
    return bool(definition.hooks) and breakpoints.pauses_before(session, definition, resource, action)


def _take_external(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: dict[str, Any],
) -> bool:
    """Use an existing object (``external_id``), which stays unchanged."""
    assert definition.external_id is not None
    exists = resource is not None and resource.action is not Action.INIT
    if resource is not None and exists and resource.physical_id == definition.external_id:
        session.resources.change(replace(resource, definition=definition.to_json(), properties=properties))
        return True
    began = begin(session, resource, definition, Action.UPDATE if exists else Action.ADOPT)
    if exists:
        sentence = f"Update to property external_id of {definition.name} ({definition.type}) is not supported"
        fail(session, began, NotSupported(sentence))
        return False
    if kind.refer is not None:
        referring = replace(began, properties=properties, physical_id=definition.external_id)
        try:
            outcome = kind.refer(session.context, referring)
        except (ResourceFailure, StokerError) as failure:
            fail(session, referring, failure)
            return False
        return finish_action(session, referring, outcome)
    if not kind.exists(session.context, definition.external_id):
        error = EntityNotFound(f"The {definition.type} ({definition.external_id}) could not be found.")
        fail(session, began, error)
        return False
    return finish_action(session, replace(began, properties=properties), Outcome(physical_id=definition.external_id))


def resolve(kind: ResourceType, definition: Definition, scope: hot.Scope) -> dict[str, Any]:
    """
    Return the properties with all functions evaluated, checked against the type's schema.

    Raises StackValidationFailed.
    """
    values = hot.evaluate(definition.properties, scope)
    try:
        checked = schemas.check(kind.properties, values) if kind.properties is not None else schemas.plain(values)
    except PropertyError as error:
        place = ".".join(("properties", *map(str, error.path)))
        raise StackValidationFailed(f"Property error: {place}: {error.problem}") from None
    # Values of other resources were unknown when the template was checked.
    kind.validate(checked)
    return checked


def _act(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    change: ResourceChange,
    resource: Resource | None,
    properties: dict[str, Any],
    metadata: dict[str, Any],
) -> bool:
    data: Mapping[str, Any] = {}
    if change is ResourceChange.REPLACE and resource is not None:
        data = reinstatement.retire(session, kind, resource)
        resource = None
    before = resource
    if change is ResourceChange.RESTORE:
        assert kind.restore is not None
        action, do = Action.UPDATE, kind.restore
    elif change is ResourceChange.UPDATE:
        action, do = Action.UPDATE, kind.update
    elif resource is not None and adoption.is_unfinished(resource, needs_cloud=kind.needs_cloud):
        action, do = Action.ADOPT, kind.adopt
    else:
        action, do = Action.CREATE, kind.create
    began = replace(begin(session, resource, definition, action), metadata=metadata)
    began = replace(began, data={**began.data, **data})
    acted = began
    if action is Action.ADOPT:
        acted = adoption.with_what_it_takes(began, with_metadata=not kind.has_live_metadata)
    try:
        outcome = do(session.context, acted, properties)
    except Replace:
        assert before is not None
        return _act(session, kind, definition, ResourceChange.REPLACE, before, properties, metadata)
    except (ResourceFailure, StokerError) as error:
        fail(session, replace(began, properties=properties), error)
        return False
    return finish_action(session, replace(acted, properties=properties), outcome)
