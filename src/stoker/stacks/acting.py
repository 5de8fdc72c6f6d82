"""One resource's action: how it begins, ends and fails, whatever the action is."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from stoker.hot import Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources.base import InnerFailure, Outcome
from stoker.stacks import breakpoints, phases
from stoker.stacks.transition import Transition

#: Heat's reason for everything ordinary.
CHANGED = "state changed"


def begin(transition: Transition, resource: Resource | None, definition: Definition, action: Action) -> Resource:
    """Bring a resource towards ``definition``; None: there is none of that name yet."""
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
        began = replace(
            resource,
            type=definition.type,
            action=action,
            status=Status.IN_PROGRESS,
            reason=CHANGED,
            definition=said,
            requires=requires,
            updated_at=transition.tx.now if action is Action.UPDATE else resource.updated_at,
            hook=None,
        )
    transition.event(began)
    return began


def begin_visit(transition: Transition, resource: Resource, action: Action) -> Resource:
    """The resource stays what it is while something is done to it."""
    began = replace(resource, action=action, status=Status.IN_PROGRESS, reason=CHANGED, hook=None)
    transition.event(began)
    return began


def settle(transition: Transition, resource: Resource, outcome: Outcome, *, planned: bool = True) -> bool:
    """True when the action is done; False when somebody will report."""
    data = resource.data if outcome.data is None else outcome.data
    known = replace(resource, physical_id=outcome.physical_id or resource.physical_id, data=data)
    if not outcome.done:
        transition.change(known)
        if planned:
            transition.plan.start(key_of(known))
        return False
    done = replace(known, status=Status.COMPLETE, reason=outcome.reason or CHANGED)
    transition.event(done)
    if planned and breakpoints.pauses(transition, done, "post"):
        transition.plan.start(key_of(done))
        return False
    finish(transition, done)
    return True


def finish(transition: Transition, done: Resource) -> None:
    if done.action is Action.DELETE:
        transition.drop(done)
    else:
        transition.change(done)


def fail(transition: Transition, resource: Resource, error: Exception, *, stack_too: bool = True) -> None:
    """The action failed, and with it, if it is waited for, the stack's operation."""
    reason = _reason(resource, error)
    failed = transition.give_up(resource, reason)
    if stack_too:
        phases.fail(transition, f"Resource {failed.action} failed: {reason}")


def key_of(resource: Resource) -> str:
    """Its step's key: by name while applying, by id where several incarnations of a name may be."""
    return resource.name if phase_of(resource) is Phase.APPLY else resource.id


def phase_of(resource: Resource) -> Phase:
    """The phase in which its present action is done."""
    if resource.action is Action.DELETE:
        return Phase.CLEAN
    return Phase.APPLY if resource.action in (Action.CREATE, Action.UPDATE, Action.ADOPT) else Phase.VISIT


def _reason(resource: Resource, error: Exception) -> str:
    """Heat's path to what failed: ``resources.group.resources.0: …``."""
    # Whatever it repeats, no column of text takes a NUL on PostgreSQL.
    said = str(error).replace("\0", "")
    if isinstance(error, InnerFailure):
        return f"{error.kind}: resources.{resource.name}{said}"
    kind = type(error).__name__ if isinstance(error, StokerError) else "Error"
    return f"{kind}: resources.{resource.name}: {said}"
