"""The steps of the phases: those that bring resources to their definitions, and those that keep the definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker import hot
from stoker.hot import Definition
from stoker.hot.words import kind_of
from stoker.model.errors import (
    NotSupported,
    ResourceActionRestricted,
    StackValidationFailed,
    StokerError,
)
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources import agent_access
from stoker.resources.agent_access import AccessMissing
from stoker.resources.base import Context, Outcome, Replace, ResourceFailure, ResourceType, TakesBack, is_created
from stoker.stacks.engine import actions, decisions, operation
from stoker.stacks.engine.actions import (
    begin,
    begin_action,
    describe_failure,
    fail,
    finish_action,
    phase_of,
    refuse,
    wait_for,
)
from stoker.stacks.engine.decisions import ResourceChange, evaluate_properties, is_suspended
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.scope import LiveScope

#: Failed actions of a resource that an action of the stack repeats or reverses.
_REPEATED: Mapping[Action, tuple[Action, ...]] = {
    Action.SUSPEND: (Action.SUSPEND, Action.RESUME),
    Action.RESUME: (Action.SUSPEND, Action.RESUME),
    Action.CHECK: (Action.CHECK,),
    Action.SNAPSHOT: (Action.SNAPSHOT,),
}


def cleanup_step(session: StackSession, id: str, *, past_hook: bool = False) -> bool:
    """
    Delete or retain a resource. Return True if the step is done.

    ``past_hook``: a breakpoint before the step has been cleared.
    """
    resource = session.resources.find_by_id(id)
    if resource is None:
        return True
    if resource.action is Action.DELETE and resource.status is Status.IN_PROGRESS:
        session.wait_for(resource, id)  # an earlier operation has begun the deletion
        return False
    external = resource.definition.get("external_id")
    retained = resource.definition.get("deletion_policy") == "Retain"
    if external or retained or resource.action is Action.INIT:
        if external:
            session.type_of(resource).stop_referring(session.context, resource)
        elif resource.action is not Action.INIT:
            operation.retain(session, resource)
        elif actions.needs_access(session, session.type_of(resource)):
            agent_access.delete(session.context, resource)
        session.resources.drop(resource)
        return True
    if not past_hook and actions.pauses(session, resource, "pre", Action.DELETE):
        session.plan.pause(id)
        return False
    began = begin_action(session, resource, Action.DELETE)
    try:
        outcome = session.type_of(resource).delete(session.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(session, began, error)
        return False
    return finish_action(session, began, outcome)


def action_step(session: StackSession, id: str) -> bool:
    """
    Run the stack's action on a resource. Return True if the step is done.

    An action of an earlier operation that is in progress ends first. A resource whose last action failed keeps its
    failure, which fails the operation after all other steps: only an update repairs it.
    """
    resource = session.resources.find_by_id(id)
    if resource is None:
        return True
    action = session.stack.action
    if resource.status is Status.IN_PROGRESS:
        session.wait_for(resource, id)
        return False
    kind = session.type_of(resource)
    has_effect = action in kind.actions or kind.agents_transport is not None
    is_repeated = has_effect and resource.action in _REPEATED.get(action, ())
    if resource.status is Status.FAILED and not is_repeated:
        problem = f"State {resource.action}_{resource.status} invalid for {action.lower()}"
        session.set(failure=session.stack.failure or describe_failure(resource, ResourceFailure(problem), action))
        return True
    if action is Action.RESUME and resource.action not in (Action.SUSPEND, Action.RESUME):
        return True  # the resource was not suspended
    return _run_action(session, resource, action, resource)


def prior_step(session: StackSession, id: str) -> bool:
    """
    Run the step of a resource for which an apply step waits. Return True if the step is done.

    A replaced or removed resource is deleted. An action of a current resource that is in progress ends. A suspended
    resource is resumed, with the properties that the update is going to give it.
    """
    resource = session.resources.find_by_id(id)
    if resource is None or (resource.current and phase_of(resource) is Phase.APPLY):
        return True  # gone, or made current again by a step of its own
    if not resource.current:
        return cleanup_step(session, id)
    if resource.status is Status.IN_PROGRESS:
        session.wait_for(resource, id)
        return False
    if not is_suspended(resource):
        return True
    planned = session.plan.definition(resource.name)
    assert planned is not None, resource.name
    definition = Definition.from_json(planned)
    try:
        properties = evaluate_properties(session, session.type_of(resource), definition, LiveScope(session))
    except StokerError as error:
        fail(session, begin_action(session, resource, Action.RESUME), error)
        return False
    return _run_action(session, resource, Action.RESUME, replace(resource, properties=properties))


def _run_action(session: StackSession, resource: Resource, action: Action, acted: Resource) -> bool:
    """Run the action of the type. ``acted``: the resource with the properties that the type uses."""
    kind = session.type_of(resource)
    if action is Action.RESUME and actions.needs_access(session, kind):
        try:
            data = {**resource.data, **agent_access.enable(session.context, resource)}
        except AccessMissing as missing:
            actions.pause_for_access(session, resource, resource.id, str(missing))
            return False
        resource = replace(resource, data=data)
    began = begin_action(session, resource, action)
    if action not in kind.actions:
        reason = f"CHECK not supported for {resource.type}" if action is Action.CHECK else ""
        return finish_action(session, began, Outcome(reason=reason))
    try:
        outcome = kind.act(session.context, replace(began, properties=acted.properties), action)
    except (ResourceFailure, StokerError) as error:
        fail(session, began, error)
        return False
    return finish_action(session, began, outcome)


def apply_step(session: StackSession, name: str, *, past_hook: bool = False) -> bool:
    """
    Run the step of the resource called ``name``, or a step for which it waits, whose ``name`` is the id of a resource.

    Return True if the step is done. Return False if the step waits, or failed together with the operation.
    ``past_hook``: a breakpoint before the step has been cleared.
    """
    planned = session.plan.definition(name)
    if planned is None:
        return prior_step(session, name)
    definition = Definition.from_json(planned)
    return definition.is_frozen or _bring(session, definition, past_hook=past_hook)


def _bring(session: StackSession, definition: Definition, *, past_hook: bool) -> bool:
    """Bring a resource to its definition. Results are as for ``apply_step``."""
    name = definition.name
    kind = session.engine.type(definition.type)
    session.resources.load((name, *definition.requires))
    resource = session.resources.find(name)
    try:
        scope = LiveScope(session)
        properties = evaluate_properties(session, kind, definition, scope)
        metadata = _evaluate_map(definition, "metadata", scope)
        if definition.update_policy:
            definition = replace(definition, update_policy=_evaluate_map(definition, "update_policy", scope))
    except StokerError as error:
        return _fail_undecided(session, definition, resource, error)
    if definition.external_id is not None:
        return _take_external(session, kind, definition, resource, properties)
    if past_hook and resource is not None and resource.action is Action.INIT:
        change = ResourceChange.CREATE  # what the step had chosen when it paused
    else:
        resource, change = decisions.choose_resource(session, kind, definition, resource, properties)
    if resource is not None and _has_prior(kind, resource, change):
        wait_for(session, name, (resource.id,))
        return False
    if not past_hook and change is not ResourceChange.AWAIT and _must_wait(session, definition, change, resource):
        return False
    return _apply(session, kind, definition, change, resource, properties, metadata)


def _fail_undecided(session: StackSession, definition: Definition, resource: Resource | None, error: Exception) -> bool:
    """Fail a resource before it is certain what the step would do with it. Return False: the step is not done."""
    action = Action.UPDATE if resource is not None and is_created(resource) else Action.CREATE
    fail(session, begin(session, resource, definition, action), error)
    return False


def fail_unstarted(session: StackSession, key: str, resource: Resource, error: Exception) -> None:
    """Fail a resource whose step has paused before its action."""
    planned = session.plan.definition(key)
    if planned is None:
        fail(session, begin_action(session, resource, Action.RESUME), error)
    else:
        _fail_undecided(session, Definition.from_json(planned), resource, error)


def _apply(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    change: ResourceChange,
    resource: Resource | None,
    properties: dict[str, Any],
    metadata: dict[str, Any],
) -> bool:
    if change in (ResourceChange.NOOP, ResourceChange.AWAIT) and resource is not None:
        requires = session.resources.requirements(definition)
        kept = replace(resource, definition=definition.to_json(), properties=properties, requires=requires)
        if change is ResourceChange.AWAIT:
            session.wait_for(kept, definition.name)
            return False
        session.resources.change(kept)
        return True
    return _act(session, kind, definition, change, resource, properties, metadata)


def _has_prior(kind: ResourceType, resource: Resource, change: ResourceChange) -> bool:
    """Return whether the resource's present action has to end, or the resource has to be resumed, before the change."""
    if change in (ResourceChange.CREATE, ResourceChange.REPLACE) or kind.is_nested:
        return False
    return is_suspended(resource) or (resource.status is Status.IN_PROGRESS and phase_of(resource) is not Phase.APPLY)


def _evaluate_map(definition: Definition, part: str, scope: hot.Scope) -> dict[str, Any]:
    source = getattr(definition, part)
    value = hot.evaluate(source, scope) if source else None
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
    return bool(definition.hooks) and actions.pauses_before(session, definition, resource, action)


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
    began = replace(began, properties=properties)
    referring = replace(began, physical_id=definition.external_id)
    try:
        outcome = kind.refer(session.context, referring)
    except (ResourceFailure, StokerError) as failure:
        fail(session, began, failure)  # without the id of an object that may belong to another project
        return False
    return finish_action(session, referring, outcome)


_Function = Callable[[Context, Resource, dict[str, Any]], Outcome]


def _choose_action(
    session: StackSession,
    kind: ResourceType,
    change: ResourceChange,
    resource: Resource | None,
    properties: dict[str, Any],
) -> tuple[Action, _Function]:
    """Return the action of a change, and the method of the type that performs it."""
    if change is ResourceChange.RESTORE:
        assert isinstance(kind, TakesBack)
        return Action.UPDATE, kind.restore
    if resource is None or change not in (ResourceChange.UPDATE, ResourceChange.RETRY):
        is_adopted = resource is not None and decisions.must_adopt(resource, kind)
        return (Action.ADOPT, kind.adopt) if is_adopted else (Action.CREATE, kind.create)
    if decisions.must_adopt(resource, kind):
        return Action.ADOPT, kind.adopt
    if not kind.repeats_update:
        return (Action.UPDATE, kind.update) if change is ResourceChange.UPDATE else (Action.CREATE, kind.create)
    if kind.next_action(session.context, resource, properties) is Action.CREATE:
        return Action.CREATE, kind.create
    return Action.UPDATE, kind.update if change is ResourceChange.UPDATE else kind.retry


def _obtain_access(
    session: StackSession,
    kind: ResourceType,
    definition: Definition,
    resource: Resource | None,
    properties: dict[str, Any],
    data: Mapping[str, Any],
) -> tuple[Resource, Mapping[str, Any]]:
    """
    Return the resource whose agent has access, and the data of its next action.

    Raises ResourceFailure, and AccessMissing if the step has paused.
    """
    if resource is None:
        resource = session.add_unstarted(definition, session.resources.requirements(definition), data)
    future = decisions.take_adopted(resource, kind)
    try:
        return resource, {**data, **agent_access.obtain(session.context, kind, future, properties)}
    except AccessMissing as missing:
        waiting = replace(resource, type=definition.type) if resource.action is Action.INIT else resource
        actions.pause_for_access(session, waiting, definition.name, str(missing))
        raise


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
        data = decisions.replace_current(session, kind, resource)
        resource = None
    before = resource
    try:
        if resource is None or resource.action is Action.INIT:
            outgoing = decisions.find_predecessors(session, kind, definition, properties)
            if outgoing:
                wait_for(session, definition.name, outgoing)
                return False
        if actions.needs_access(session, kind):
            resource, data = _obtain_access(session, kind, definition, resource, properties, data)
        action, do = _choose_action(session, kind, change, resource, properties)
    except AccessMissing:
        return False
    except (ResourceFailure, StokerError) as error:
        return _fail_undecided(session, definition, resource, error)
    began = replace(begin(session, resource, definition, action), metadata=metadata)
    began = replace(began, data={**began.data, **data})
    acted = began
    if action is Action.ADOPT:
        acted = decisions.take_adopted(began, kind)
    try:
        outcome = do(session.context, acted, properties)
    except Replace:
        assert before is not None
        return _act(session, kind, definition, ResourceChange.REPLACE, before, properties, metadata)
    except (ResourceFailure, StokerError) as error:
        fail(session, replace(began, properties=properties), error)
        return False
    return finish_action(session, replace(acted, properties=properties), outcome)
