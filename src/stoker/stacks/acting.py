"""One resource's action: how it begins, ends and fails, whatever the action is."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from stoker.hot import Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources.base import InnerFailure, Outcome, ResourceFailure
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
    known = _with(resource, outcome)
    if not outcome.done:
        transition.change(replace(known, reason=outcome.reason or known.reason))
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
    """
    The action failed, and with it, if it is waited for, the stack's operation: at once, or where it may fail once
    everybody else has had their turn.
    """
    reason = _reason(resource, error)
    if isinstance(error, ResourceFailure) and error.outcome is not None:
        resource = _with(resource, error.outcome)
    failed = transition.give_up(resource, reason)
    if not stack_too:
        return
    words = f"Resource {failed.action} failed: {reason}"
    if failed.definition.get("may_fail") and phase_of(failed) is Phase.APPLY:
        transition.set(failure=transition.stack.failure or words)
        end_step(transition, key_of(failed))
    else:
        phases.fail(transition, words)


def end_step(transition: Transition, key: str) -> None:
    transition.todo.extend(transition.plan.end(key))
    transition.set(remaining=transition.stack.remaining - 1)


def key_of(resource: Resource) -> str:
    """Its step's key: by name while applying, by id where several incarnations of a name may be."""
    return resource.name if phase_of(resource) is Phase.APPLY else resource.id


def phase_of(resource: Resource) -> Phase:
    """The phase in which its present action is done."""
    if resource.action is Action.DELETE:
        return Phase.CLEAN
    return Phase.APPLY if resource.action in (Action.CREATE, Action.UPDATE, Action.ADOPT) else Phase.VISIT


def _with(resource: Resource, outcome: Outcome) -> Resource:
    data = resource.data if outcome.data is None else outcome.data
    return replace(resource, physical_id=outcome.physical_id or resource.physical_id, data=data)


def _reason(resource: Resource, error: Exception) -> str:
    """Heat's path to what failed: ``resources.group.resources.0: …``."""
    # Whatever it repeats, no column of text takes a NUL on PostgreSQL.
    said = str(error).replace("\0", "")
    if isinstance(error, InnerFailure):
        return f"{error.kind}: resources.{resource.name}{said}"
    kind = type(error).__name__ if isinstance(error, StokerError) else "Error"
    return f"{kind}: resources.{resource.name}: {said}"
