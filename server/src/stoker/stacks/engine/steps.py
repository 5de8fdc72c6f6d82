"""The steps of the phases: those that bring resources to their definitions, and those that keep the definitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.hot import Definition
from stoker.model.errors import NotSupported, ResourceActionRestricted, StokerError
from stoker.model.stack import Action, Phase, Resource, Status
from stoker.resources import agent_access
from stoker.resources.agent_access import AccessMissing
from stoker.resources.base import KEEPS_OBJECT, Context, Outcome, Replace, ResourceFailure, TakesBack, is_created
from stoker.stacks.engine import actions, decisions, operation
from stoker.stacks.engine.actions import (
    begin,
    begin_action,
    describe_failure,
    fail,
    finish_action,
    perform,
    phase_of,
    refuse,
    wait_for,
)
from stoker.stacks.engine.decisions import DesiredResource, ResourceChange, is_suspended
from stoker.stacks.engine.session import StackSession

#: Failed actions of a resource that an action of the stack repeats or reverses.
_REPEATED: Mapping[Action, tuple[Action, ...]] = {
    Action.SUSPEND: (Action.SUSPEND, Action.RESUME),
    Action.RESUME: (Action.SUSPEND, Action.RESUME),
    Action.CHECK: (Action.CHECK,),
    Action.SNAPSHOT: (Action.SNAPSHOT,),
}


def cleanup_step(session: StackSession, id: str) -> bool:
    """Delete or retain a resource. Return True if the step is done."""
    resource = session.resources.find_by_id(id)
    if resource is None:
        return True
    if resource.action is Action.DELETE and resource.status is Status.IN_PROGRESS:
        session.wait_for(resource, id)  # an earlier operation has begun the deletion
        return False
    definition = resource.definition
    stays = definition.get("external_id") or definition.get("deletion_policy") == "Retain"
    # A nested stack is deleted without the objects of its own resources that have the key.
    is_kept = resource.data.get(KEEPS_OBJECT) and not session.type_of(resource).is_nested
    if stays or is_kept or resource.action is Action.INIT:
        _release(session, resource)
        return True
    hook = actions.find_hook(session, definition.get("hooks", ()), "pre", Action.DELETE)
    if hook is not None and id not in session.open_gates:
        actions.pause(session, resource, hook, Action.DELETE, id)
        return False
    began = begin_action(session, resource, Action.DELETE)
    return perform(session, began, session.type_of(resource).delete, began)


def _release(session: StackSession, resource: Resource) -> None:
    """Drop a resource whose object stays, or does not exist yet."""
    if resource.definition.get("external_id"):
        session.type_of(resource).stop_referring(session.context, resource)
    elif resource.action is not Action.INIT:
        operation.retain(session, resource)
    elif actions.needs_access(session, session.type_of(resource)):
        agent_access.delete(session.context, resource)
    session.resources.drop(resource)


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
    return _run_action(session, resource, action, resource.properties)


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
    try:
        desired = DesiredResource.of(session, Definition.from_json(planned))
    except StokerError as error:
        fail(session, begin_action(session, resource, Action.RESUME), error)
        return False
    return _run_action(session, resource, Action.RESUME, desired.properties)


def _run_action(session: StackSession, resource: Resource, action: Action, properties: Mapping[str, Any]) -> bool:
    """Run the action of the type with these properties, which are not stored."""
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
    return perform(session, began, kind.act, replace(began, properties=properties), action)


def apply_step(session: StackSession, name: str) -> bool:
    """
    Run the step of the resource ``name``, or a step for which it waits, then ``name`` is an id. Return whether the step
    is done; False if it waits, or failed together with the operation.
    """
    planned = session.plan.definition(name)
    if planned is None:
        return prior_step(session, name)
    definition = Definition.from_json(planned)
    return definition.is_frozen or _bring(session, definition)


def _bring(session: StackSession, definition: Definition) -> bool:
    """Bring a resource to its definition. Results are as for ``apply_step``."""
    session.resources.load((definition.name, *definition.requires))
    resource = session.resources.find(definition.name)
    try:
        desired = DesiredResource.of(session, definition)
    except StokerError as error:
        return _fail_undecided(session, definition, resource, error)
    if definition.external_id is not None:
        return _take_external(desired, resource)
    if definition.name in session.open_gates and resource is not None and resource.action is Action.INIT:
        change = ResourceChange.CREATE  # what the step had chosen when it paused
    else:
        resource, change = desired.choose_resource(resource)
    if _waits_for_prior(desired, change, resource) or _waits_at_gate(desired, change, resource):
        return False
    if resource is not None and change in (ResourceChange.NOOP, ResourceChange.AWAIT):
        return _keep(desired, resource, is_awaited=change is ResourceChange.AWAIT)
    return _act(desired, change, resource)


def _keep(desired: DesiredResource, resource: Resource, *, is_awaited: bool) -> bool:
    """Store the definition of a resource that the operation does not change. Results are as for ``apply_step``."""
    session, definition = desired.session, desired.definition
    requires = session.resources.requirements(definition)
    unchanged = replace(resource, definition=definition.to_json(), properties=desired.properties, requires=requires)
    if is_awaited:
        session.wait_for(unchanged, definition.name)
    else:
        session.resources.change(unchanged)
    return not is_awaited


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


def _waits_for_prior(desired: DesiredResource, change: ResourceChange, resource: Resource | None) -> bool:
    """Let the resource's present action end, or the resource be resumed, first. Return whether the step has to wait."""
    if resource is None or change in (ResourceChange.CREATE, ResourceChange.REPLACE) or desired.kind.is_nested:
        return False
    acts = resource.status is Status.IN_PROGRESS and phase_of(resource) is not Phase.APPLY
    if not acts and not is_suspended(resource):
        return False
    wait_for(desired.session, desired.definition.name, (resource.id,))
    return True


def _waits_at_gate(desired: DesiredResource, change: ResourceChange, resource: Resource | None) -> bool:
    """Apply restrictions and breakpoints of the environment. Return whether the step must not continue."""
    if change is ResourceChange.AWAIT or desired.definition.name in desired.session.open_gates:
        return False
    session, definition = desired.session, desired.definition
    restricted = {ResourceChange.UPDATE: "update", ResourceChange.REPLACE: "replace"}.get(change)
    if resource is not None and restricted in definition.restricted_actions:
        refuse(session, resource, ResourceActionRestricted(f"{restricted} is restricted for resource."))
        return True
    if not definition.hooks:
        return False
    # As in Heat, a breakpoint before an update also stops resources without changes.
    action = (
        Action.UPDATE
        if change in (ResourceChange.NOOP, ResourceChange.UPDATE, ResourceChange.REPLACE)
        else Action.CREATE
    )
    hook = actions.find_hook(session, definition.hooks, "pre", action)
    if hook is not None:
        resource = resource or session.add_unstarted(definition, session.resources.requirements(definition))
        actions.pause(session, resource, hook, action, definition.name)
    return hook is not None


def _take_external(desired: DesiredResource, resource: Resource | None) -> bool:
    """Use an existing object (``external_id``), which stays unchanged."""
    session, definition = desired.session, desired.definition
    assert definition.external_id is not None
    exists = resource is not None and resource.action is not Action.INIT
    if resource is not None and exists and resource.physical_id == definition.external_id:
        session.resources.change(replace(resource, definition=definition.to_json(), properties=desired.properties))
        return True
    began = begin(session, resource, definition, Action.UPDATE if exists else Action.ADOPT)
    if exists:
        sentence = f"Update to property external_id of {definition.name} ({definition.type}) is not supported"
        fail(session, began, NotSupported(sentence))
        return False
    began = replace(began, properties=desired.properties)
    referring = replace(began, physical_id=definition.external_id)
    # A failure leaves no id of an object that may belong to another project.
    return perform(session, referring, desired.kind.refer, referring, failing=began)


_Function = Callable[[Context, Resource, dict[str, Any]], Outcome]


def _choose_action(
    desired: DesiredResource, change: ResourceChange, resource: Resource | None
) -> tuple[Action, _Function]:
    kind = desired.kind
    if change is ResourceChange.RESTORE:
        assert isinstance(kind, TakesBack)
        return Action.UPDATE, kind.restore
    if resource is not None and decisions.must_adopt(resource, kind):
        return Action.ADOPT, kind.adopt
    if resource is None or change not in (ResourceChange.UPDATE, ResourceChange.RETRY):
        return Action.CREATE, kind.create
    if not kind.repeats_update:
        return (Action.UPDATE, kind.update) if change is ResourceChange.UPDATE else (Action.CREATE, kind.create)
    if kind.next_action(desired.session.context, resource, desired.properties) is Action.CREATE:
        return Action.CREATE, kind.create
    return Action.UPDATE, kind.update if change is ResourceChange.UPDATE else kind.retry


def _obtain_access(
    desired: DesiredResource, resource: Resource | None, data: Mapping[str, Any]
) -> tuple[Resource, Mapping[str, Any]]:
    """Return the resource whose agent has access, and data. Raises ResourceFailure, AccessMissing after a pause."""
    session, kind, definition = desired.session, desired.kind, desired.definition
    if resource is None:
        resource = session.add_unstarted(definition, session.resources.requirements(definition), data)
    future = decisions.take_adopted(resource, kind)
    try:
        return resource, {**data, **agent_access.obtain(session.context, kind, future, desired.properties)}
    except AccessMissing as missing:
        waiting = replace(resource, type=definition.type) if resource.action is Action.INIT else resource
        actions.pause_for_access(session, waiting, definition.name, str(missing))
        raise


def _act(desired: DesiredResource, change: ResourceChange, resource: Resource | None) -> bool:
    session, kind, definition = desired.session, desired.kind, desired.definition
    data: Mapping[str, Any] = {}
    if change is ResourceChange.REPLACE and resource is not None:
        data = desired.replace(resource)
        resource = None
    before = resource
    try:
        if resource is None or resource.action is Action.INIT:
            outgoing = desired.find_predecessors()
            if outgoing:
                wait_for(session, definition.name, outgoing)
                return False
        if actions.needs_access(session, kind):
            resource, data = _obtain_access(desired, resource, data)
        action, do = _choose_action(desired, change, resource)
    except AccessMissing:
        return False
    except (ResourceFailure, StokerError) as error:
        return _fail_undecided(session, definition, resource, error)
    began = begin(session, resource, definition, action)
    began = replace(began, metadata=desired.metadata, data={**began.data, **data})
    acted = decisions.take_adopted(began, kind) if action is Action.ADOPT else began
    done, failing = replace(acted, properties=desired.properties), replace(began, properties=desired.properties)
    try:
        return perform(session, done, do, acted, desired.properties, failing=failing)
    except Replace:
        assert before is not None
        return _act(desired, ResourceChange.REPLACE, before)
