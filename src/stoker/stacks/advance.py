"""
Move a stack as far as what is known allows, inside the transaction that made it known.

Whoever commits a fact (a request, a signal, a finished job, a passed deadline) calls in here; nothing waits by
polling. A step's cost is its own: the resource it is about and the steps that waited for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker import hot
from stoker.hot import Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources import properties as schemas
from stoker.resources.base import Outcome, Replace, ResourceFailure, ResourceType
from stoker.resources.properties import PropertyError
from stoker.stacks import phases
from stoker.stacks.decide import Deed, decide
from stoker.stacks.engine import ADVANCE
from stoker.stacks.scope import LiveScope
from stoker.stacks.transition import Transition

#: Heat's reason for everything ordinary.
CHANGED = "state changed"


def advance(transition: Transition, ready: Iterable[str]) -> None:
    """Run steps that wait for nothing, and those they free, up to the transaction's share; then see what is next."""
    limit = transition.engine.limits.steps_per_transaction
    todo = deque(ready)
    for _ in range(limit):
        if not todo or transition.stack.phase is Phase.IDLE:
            break
        key = todo.popleft()
        step = apply_step if transition.stack.phase is Phase.APPLY else clean_step
        if step(transition, key):
            todo.extend(end_step(transition, key))
    if transition.stack.phase is Phase.IDLE:
        return
    if transition.stack.remaining == 0:
        following = phases.end_phase(transition)
        if following is not None:
            advance(transition, following)
    elif todo:
        _go_on_later(transition)


def _go_on_later(transition: Transition) -> None:
    """The rest is stored as steps that wait for nothing: the next transaction finds them."""
    stack = transition.stack
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    transition.engine.services.work.defer(transition.tx, ADVANCE, stack.id, args)


def end_step(transition: Transition, key: str) -> list[str]:
    freed = transition.plan.end(key)
    transition.set(remaining=transition.stack.remaining - 1)
    return freed


def apply_step(transition: Transition, name: str) -> bool:
    """True when the step is done; False when it waits for a report, or failed and with it the operation."""
    said = transition.plan.definition(name)
    assert said is not None, name
    definition = Definition.from_json(said)
    kind = transition.engine.types[definition.type]
    resource = transition.resource(name)
    try:
        scope = LiveScope(transition)
        properties = resolve(kind, definition, scope)
        metadata = hot.evaluate(definition.metadata, scope)
    except (StokerError, PropertyError) as error:
        began = begin(transition, resource, definition, Action.UPDATE if resource else Action.CREATE)
        fail(transition, began, f"{type(error).__name__}: resources.{name}: {error}")
        return False
    deed = decide(resource, kind, definition, properties)
    if deed in (Deed.KEEP, Deed.JOIN) and resource is not None:
        transition.change(replace(resource, definition=said, requires=transition.requirements(definition)))
        if deed is Deed.JOIN:
            transition.plan.start(name)
        return deed is Deed.KEEP
    return act(transition, kind, definition, deed, resource, properties, metadata)


def act(
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
    action = Action.UPDATE if deed is Deed.UPDATE else Action.CREATE
    before = resource
    began = begin(transition, resource, definition, action)
    began = replace(began, metadata=metadata)
    try:
        do = kind.update if deed is Deed.UPDATE else kind.create
        outcome = do(transition.context, began, properties)
    except Replace:
        assert before is not None
        return act(transition, kind, definition, Deed.REPLACE, before, properties, metadata)
    except (ResourceFailure, StokerError) as error:
        fail(transition, replace(began, properties=properties), _reason(began, error))
        return False
    return settle(transition, replace(began, properties=properties), outcome)


def clean_step(transition: Transition, id: str) -> bool:
    resource = transition.resource_by_id(id)
    if resource is None:
        return True
    if resource.definition.get("deletion_policy") == "Retain" or resource.action is Action.INIT:
        transition.drop(resource)
        return True
    began = replace(resource, action=Action.DELETE, status=Status.IN_PROGRESS, reason=CHANGED)
    transition.event(began)
    try:
        outcome = transition.type_of(resource).delete(transition.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(transition, began, _reason(began, error))
        return False
    return settle(transition, began, outcome)


def wake(transition: Transition, resource: Resource, failure: str | None = None) -> None:
    """Somebody reported on a resource that was waiting: see how it stands, and go on from there."""
    if resource.status is not Status.IN_PROGRESS:
        return
    key = resource.id if resource.action is Action.DELETE else resource.name
    try:
        if failure is not None:
            raise ResourceFailure(failure)
        outcome = transition.type_of(resource).check(transition.context, resource)
    except (ResourceFailure, StokerError) as error:
        # A resource of an operation that was superseded or has failed already ends quietly.
        fail(transition, resource, _reason(resource, error), stack_too=_is_waited_for(transition, resource, key))
        return
    waited_for = _is_waited_for(transition, resource, key)
    if settle(transition, resource, outcome, planned=waited_for) and waited_for:
        advance(transition, end_step(transition, key))


def _is_waited_for(transition: Transition, resource: Resource, key: str) -> bool:
    phase = Phase.CLEAN if resource.action is Action.DELETE else Phase.APPLY
    return (
        transition.stack.phase is phase
        and (resource.current or phase is Phase.CLEAN)
        and transition.plan.is_running(key)
    )


def resolve(kind: ResourceType, definition: Definition, scope: hot.Scope) -> dict[str, Any]:
    """Properties with every function resolved, checked against the type's schema."""
    values = hot.evaluate(definition.properties, scope)
    return values if kind.properties is None else schemas.check(kind.properties, values)


def begin(transition: Transition, resource: Resource | None, definition: Definition, action: Action) -> Resource:
    said = definition.to_json()
    requires = transition.requirements(definition)
    if resource is None:
        began = Resource(
            id=str(uuid4()),
            stack_id=transition.stack.id,
            name=definition.name,
            type=definition.type,
            action=action,
            status=Status.IN_PROGRESS,
            reason=CHANGED,
            definition=said,
            requires=requires,
            created_at=transition.tx.now,
        )
        transition.add(began)
    else:
        updated = transition.tx.now if action is Action.UPDATE else resource.updated_at
        began = replace(
            resource,
            type=definition.type,
            action=action,
            status=Status.IN_PROGRESS,
            reason=CHANGED,
            definition=said,
            requires=requires,
            updated_at=updated,
        )
    transition.event(began)
    return began


def settle(transition: Transition, resource: Resource, outcome: Outcome, *, planned: bool = True) -> bool:
    data = resource.data if outcome.data is None else outcome.data
    known = replace(resource, physical_id=outcome.physical_id or resource.physical_id, data=data)
    if not outcome.done:
        transition.change(known)
        if planned:
            transition.plan.start(known.id if known.action is Action.DELETE else known.name)
        return False
    done = replace(known, status=Status.COMPLETE, reason=CHANGED)
    transition.event(done)
    if done.action is Action.DELETE:
        transition.drop(done)
    else:
        transition.change(done)
    return True


def fail(transition: Transition, resource: Resource, reason: str, *, stack_too: bool = True) -> None:
    failed = transition.give_up(resource, reason)
    if stack_too:
        following = phases.fail(transition, f"Resource {failed.action} failed: {reason}")
        if following is not None:
            advance(transition, following)


def _reason(resource: Resource, error: Exception) -> str:
    kind = type(error).__name__ if isinstance(error, StokerError) else "Error"
    return f"{kind}: resources.{resource.name}: {error}"
