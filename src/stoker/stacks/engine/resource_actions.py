"""Start, end and failure of an action on one resource, for all kinds of actions."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

from stoker.hot import Definition
from stoker.model.errors import StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources.base import NestedFailure, Outcome, ResourceFailure
from stoker.stacks.engine import breakpoints, phases
from stoker.stacks.engine.session import StackSession

#: Heat's reason for a regular change.
CHANGED = "state changed"


def begin(session: StackSession, resource: Resource | None, definition: Definition, action: Action) -> Resource:
    """Start an action that brings a resource to ``definition``. ``resource`` is None if there is none of this name."""
    stored_definition = definition.to_json()
    requires = session.resources.requirements(definition)
    if resource is None:
        began = Resource(
            id=str(uuid4()),
            stack_id=session.stack.id,
            name=definition.name,
            type=definition.type,
            action=action,
            status=Status.IN_PROGRESS,
            reason=CHANGED,
            definition=stored_definition,
            requires=requires,
            created_at=session.tx.now,
        )
        session.resources.add(began)
    else:
        began = replace(
            resource,
            type=definition.type,
            action=action,
            status=Status.IN_PROGRESS,
            reason=CHANGED,
            definition=stored_definition,
            requires=requires,
            updated_at=session.tx.now if action is Action.UPDATE else resource.updated_at,
            hook=None,
        )
    session.events.record(session.stack, began)
    return began


def begin_action(session: StackSession, resource: Resource, action: Action) -> Resource:
    """Start an action that keeps the resource's definition."""
    began = replace(resource, action=action, status=Status.IN_PROGRESS, reason=CHANGED, hook=None)
    session.events.record(session.stack, began)
    return began


def finish_action(session: StackSession, resource: Resource, outcome: Outcome, *, planned: bool = True) -> bool:
    """
    Apply the outcome of an action. Return True if the action is done, False if a later report ends the action.

    ``planned``: the action belongs to a step of the present plan.
    """
    updated = _with(resource, outcome)
    if not outcome.done:
        session.resources.change(replace(updated, reason=outcome.reason or updated.reason))
        if planned:
            session.plan.start(key_of(updated))
        return False
    done = replace(updated, status=Status.COMPLETE, reason=outcome.reason or CHANGED)
    session.events.record(session.stack, done)
    if planned and breakpoints.pauses(session, done, "post"):
        session.plan.start(key_of(done))
        return False
    finish(session, done)
    return True


def finish(session: StackSession, done: Resource) -> None:
    """Write a resource whose action is done, or drop the resource if the action was DELETE."""
    if done.action is Action.DELETE:
        session.resources.drop(done)
    else:
        session.resources.change(done)


def fail(session: StackSession, resource: Resource, error: Exception, *, stack_too: bool = True) -> None:
    """
    Fail the action on a resource.

    If the stack waits for the resource (``stack_too``), the operation fails too: immediately, or after all other steps
    if the resource ``may_fail``.
    """
    reason = _reason(resource, error)
    if isinstance(error, ResourceFailure) and error.outcome is not None:
        resource = _with(resource, error.outcome)
    failed = session.abandon_resource(resource, reason)
    if stack_too:
        _fail_operation(session, failed, reason)


def refuse(session: StackSession, resource: Resource, error: StokerError) -> None:
    """Fail the operation because an update must not change the resource, which stays as it is."""
    refused = replace(resource, action=Action.UPDATE, status=Status.FAILED, reason=error.message)
    session.events.record(session.stack, refused)
    _fail_operation(session, refused, _reason(resource, error))


def _fail_operation(session: StackSession, failed: Resource, reason: str) -> None:
    words = f"Resource {failed.action} failed: {reason}"
    if failed.definition.get("may_fail") and phase_of(failed) is Phase.APPLY:
        session.set(failure=session.stack.failure or words)
        end_step(session, key_of(failed))
    else:
        phases.fail(session, words)


def end_step(session: StackSession, key: str) -> None:
    """Remove a step from the plan and queue the steps that waited only for this step."""
    session.todo.extend(session.plan.end(key))
    session.set(remaining=session.stack.remaining - 1)


def key_of(resource: Resource) -> str:
    """
    Return the key of the resource's step.

    The key is the name in the apply phase, and the id in other phases, where one name may have several incarnations.
    """
    return resource.name if phase_of(resource) is Phase.APPLY else resource.id


def phase_of(resource: Resource) -> Phase:
    """Return the phase to which the resource's present action belongs."""
    if resource.action is Action.DELETE:
        return Phase.CLEANUP
    return Phase.APPLY if resource.action in (Action.CREATE, Action.UPDATE, Action.ADOPT) else Phase.ACTION


def _with(resource: Resource, outcome: Outcome) -> Resource:
    data = resource.data if outcome.data is None else outcome.data
    return replace(resource, physical_id=outcome.physical_id or resource.physical_id, data=data)


def _reason(resource: Resource, error: Exception) -> str:
    """Return the reason with Heat's path to the failed resource: ``resources.group.resources.0: …``."""
    # PostgreSQL refuses NUL in text columns.
    message = str(error).replace("\0", "")
    if isinstance(error, NestedFailure):
        return f"{error.kind}: resources.{resource.name}{message}"
    kind = type(error).__name__ if isinstance(error, StokerError) else getattr(error, "kind", "Error")
    return f"{kind}: resources.{resource.name}: {message}"
