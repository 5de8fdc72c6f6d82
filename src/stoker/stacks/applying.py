"""The steps that lead resources to what the template says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from stoker import hot
from stoker.hot import Definition
from stoker.model.errors import StackValidationFailed, StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources import properties as schemas
from stoker.resources.base import Replace, ResourceFailure, ResourceType
from stoker.resources.properties import PropertyError
from stoker.stacks.acting import begin, fail, settle
from stoker.stacks.decide import Deed, decide
from stoker.stacks.scope import LiveScope
from stoker.stacks.transition import Transition


def apply_step(transition: Transition, name: str) -> bool:
    """True when the step is done; False when it waits for a report, or failed and with it the operation."""
    planned = transition.plan.definition(name)
    assert planned is not None, name
    definition = Definition.from_json(planned)
    kind = transition.engine.type(definition.type)
    resource = transition.resource(name)
    try:
        scope = LiveScope(transition)
        properties = resolve(kind, definition, scope)
        metadata = hot.evaluate(definition.metadata, scope)
        definition = replace(definition, update_policy=hot.evaluate(definition.update_policy, scope))
    except StokerError as error:
        fail(transition, begin(transition, resource, definition, Action.UPDATE if resource else Action.CREATE), error)
        return False
    stale = resource is not None and resource.action is not Action.INIT and kind.is_stale(transition.context, resource)
    deed = decide(resource, kind, definition, properties, stale=stale)
    if deed in (Deed.KEEP, Deed.JOIN) and resource is not None:
        transition.change(
            replace(resource, definition=definition.to_json(), requires=transition.requirements(definition))
        )
        if deed is Deed.JOIN:
            transition.plan.start(name)
        return deed is Deed.KEEP
    return _act(transition, kind, definition, deed, resource, properties, metadata)


def resolve(kind: ResourceType, definition: Definition, scope: hot.Scope) -> dict[str, Any]:
    """Properties with every function resolved, checked against the type's schema."""
    values = hot.evaluate(definition.properties, scope)
    if kind.properties is None:
        return dict(values)
    try:
        checked = schemas.check(kind.properties, values)
    except PropertyError as error:
        place = ".".join(map(str, error.path))
        raise StackValidationFailed(f"Property error: properties.{place}: {error.problem}") from None
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
    elif resource is not None and resource.action is Action.INIT and resource.physical_id:
        action, do = Action.ADOPT, kind.adopt
    else:
        action, do = Action.CREATE, kind.create
    began = replace(begin(transition, resource, definition, action), metadata=metadata)
    try:
        outcome = do(transition.context, began, properties)
    except Replace:
        assert before is not None
        return _act(transition, kind, definition, Deed.REPLACE, before, properties, metadata)
    except (ResourceFailure, StokerError) as error:
        fail(transition, replace(began, properties=properties), error)
        return False
    return settle(transition, replace(began, properties=properties), outcome)
