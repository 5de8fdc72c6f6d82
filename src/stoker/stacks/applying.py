"""The steps that lead resources to what the template says."""

from __future__ import annotations

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
from stoker.stacks import adoption, breakpoints
from stoker.stacks.acting import begin, fail, settle
from stoker.stacks.decide import Deed, decide
from stoker.stacks.scope import LiveScope
from stoker.stacks.transition import Transition


def apply_step(transition: Transition, name: str, *, past_hook: bool = False) -> bool:
    """True when the step is done; False when it waits for a report, or failed and with it the operation."""
    planned = transition.plan.definition(name)
    assert planned is not None, name
    definition = Definition.from_json(planned)
    if definition.held:
        return True
    kind = transition.engine.type(definition.type)
    resource = transition.resource(name)
    try:
        scope = LiveScope(transition)
        properties = resolve(kind, definition, scope)
        metadata = _map(definition, "metadata", scope)
        definition = replace(definition, update_policy=_map(definition, "update_policy", scope))
    except StokerError as error:
        exists = resource is not None and resource.action is not Action.INIT
        fail(transition, begin(transition, resource, definition, Action.UPDATE if exists else Action.CREATE), error)
        return False
    if definition.external_id is not None:
        return _take_external(transition, kind, definition, resource, properties)
    stale = resource is not None and resource.action is not Action.INIT and kind.is_stale(transition.context, resource)
    deed = decide(resource, kind, definition, properties, stale=stale)
    if deed in (Deed.KEEP, Deed.JOIN) and resource is not None:
        transition.change(
            replace(resource, definition=definition.to_json(), requires=transition.requirements(definition))
        )
        if deed is Deed.JOIN:
            transition.plan.start(name)
        return deed is Deed.KEEP
    if not past_hook and _is_held_up(transition, definition, deed, resource):
        return False
    return _act(transition, kind, definition, deed, resource, properties, metadata)


def _map(definition: Definition, part: str, scope: hot.Scope) -> dict[str, Any]:
    found = hot.evaluate(getattr(definition, part), scope)
    if found is not None and not isinstance(found, dict):
        raise StackValidationFailed(f"{part}: Value must be a map, not {kind_of(found)}")
    return found or {}


def _is_held_up(transition: Transition, definition: Definition, deed: Deed, resource: Resource | None) -> bool:
    """By what the environment says of the resource."""
    restricted = {Deed.UPDATE: "update", Deed.REPLACE: "replace"}.get(deed)
    if restricted in definition.restricted_actions:
        error = ResourceActionRestricted(f"{restricted} is restricted for resource.")
        fail(transition, begin(transition, resource, definition, Action.UPDATE), error)
        return True
    action = Action.UPDATE if deed in (Deed.UPDATE, Deed.REPLACE) else Action.CREATE
    return bool(definition.hooks) and breakpoints.pauses_before(transition, definition, resource, action)


def _take_external(
    transition: Transition,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: dict[str, Any],
) -> bool:
    """The resource is something that was there before, and stays as it is and where it is."""
    assert definition.external_id is not None
    exists = resource is not None and resource.action is not Action.INIT
    if resource is not None and exists and resource.physical_id == definition.external_id:
        transition.change(replace(resource, definition=definition.to_json(), properties=properties))
        return True
    began = begin(transition, resource, definition, Action.UPDATE if exists else Action.ADOPT)
    if exists:
        sentence = f"Update to property external_id of {definition.name} ({definition.type}) is not supported"
        fail(transition, began, NotSupported(sentence))
        return False
    if not kind.exists(transition.context, definition.external_id):
        error = EntityNotFound(f"The {definition.type} ({definition.external_id}) could not be found.")
        fail(transition, began, error)
        return False
    return settle(transition, replace(began, properties=properties), Outcome(physical_id=definition.external_id))


def resolve(kind: ResourceType, definition: Definition, scope: hot.Scope) -> dict[str, Any]:
    """Properties with every function resolved, checked against the type's schema."""
    values = hot.evaluate(definition.properties, scope)
    try:
        checked = schemas.check(kind.properties, values) if kind.properties is not None else schemas.plain(values)
    except PropertyError as error:
        place = ".".join(("properties", *map(str, error.path)))
        raise StackValidationFailed(f"Property error: {place}: {error.problem}") from None
    # What others say was not known when the template was checked.
    kind.validate(checked)
    return checked


def _act(
    transition: Transition,
    kind: ResourceType,
    definition: Definition,
    deed: Deed,
    resource: Resource | None,
    properties: dict[str, Any],
    metadata: dict[str, Any],
) -> bool:
    if deed is Deed.REPLACE and resource is not None:
        transition.retire(resource)
        resource = None
    before = resource
    if deed is Deed.UPDATE:
        action, do = Action.UPDATE, kind.update
    elif resource is not None and adoption.is_stand_in(resource):
        action, do = Action.ADOPT, kind.adopt
    else:
        action, do = Action.CREATE, kind.create
    began = replace(begin(transition, resource, definition, action), metadata=metadata)
    acted = adoption.with_what_it_takes(began) if action is Action.ADOPT else began
    try:
        outcome = do(transition.context, acted, properties)
    except Replace:
        assert before is not None
        return _act(transition, kind, definition, Deed.REPLACE, before, properties, metadata)
    except (ResourceFailure, StokerError) as error:
        fail(transition, replace(began, properties=properties), error)
        return False
    return settle(transition, replace(acted, properties=properties), outcome)
