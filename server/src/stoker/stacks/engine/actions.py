"""Start, end and failure of an action on one resource, and the gates before and after it.

A gate is a breakpoint of the environment, or what the resource's agent needs and lacks: a user or a signed URL. The
step pauses there and begins again behind the gate. At a breakpoint, the resource has the name of the hook, which a
signal clears; what the agent needs wakes the resource.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from msgspec.structs import replace

from stoker.hot import Definition
from stoker.hot.words import clip
from stoker.model.errors import StokerError
from stoker.model.stack import Action, Phase, Resource, Status, StepState
from stoker.resources import agent_access
from stoker.resources.base import USER, NestedFailure, Outcome, ResourceFailure, ResourceType
from stoker.stacks.engine import operation
from stoker.stacks.engine.session import StackSession


def find_hook(session: StackSession, hooks: Collection[str], when: str, action: Action) -> str | None:
    """
    Return the hook ``when`` (pre, post) an action if it is among ``hooks`` and applies.

    As in Heat, resources that an update creates or deletes do not pause.
    """
    hook = f"{when}-{action.lower()}"
    return hook if hook in hooks and session.stack.action is action else None


def pause(session: StackSession, resource: Resource, hook: str, action: Action, key: str | None = None) -> Resource:
    """Pause a resource at a hook, and return it. ``key``: that of the step, if it pauses before it starts."""
    stopped = session.resources.change(replace(resource, hook=hook))
    session.record(replace(stopped, reason=f"{action} paused until Hook {hook} is cleared"))
    if key is not None:
        session.plan.pause(key)
    return stopped


def pause_for_access(session: StackSession, resource: Resource, key: str, reason: str) -> None:
    """Pause the step of a resource until its agent has access."""
    waiting = replace(resource, reason=reason)
    session.record(waiting)
    if resource.action is Action.INIT:
        session.resources.change(waiting)
    session.plan.pause(key)


def needs_access(session: StackSession, kind: ResourceType) -> bool:
    """Return whether agents of the type may have to wait for access at this site."""
    return kind.agents_transport is not None and session.engine.env.agents_wait


#: Heat's reason for a regular change.
CHANGED = "state changed"


def begin(session: StackSession, resource: Resource | None, definition: Definition, action: Action) -> Resource:
    """Start an action that brings a resource to ``definition``. ``resource`` is None if there is none of this name."""
    requires = session.resources.requirements(definition)
    resource = resource or session.add_unstarted(definition, requires)
    updated_at = session.tx.now if action is Action.UPDATE else resource.updated_at
    wanted = {"type": definition.type, "definition": definition.to_json(), "requires": requires}
    return begin_action(session, replace(resource, **wanted, updated_at=updated_at), action)


def begin_action(session: StackSession, resource: Resource, action: Action, reason: str = CHANGED) -> Resource:
    """Start an action that keeps the resource's definition."""
    began = replace(resource, action=action, status=Status.IN_PROGRESS, reason=reason, hook=None)
    session.record(began)
    return began


def perform(
    session: StackSession,
    began: Resource,
    do: Callable[..., Outcome],
    *arguments: Any,
    failing: Resource | None = None,
    planned: bool = True,
) -> bool:
    """
    Call a method of a type for an action that has begun, and apply the outcome. Return whether the action is done.
    ``failing``: what a failure stores, by default ``began``; ``planned``: a step of the plan awaits the action.
    """
    try:
        outcome = do(session.context, *arguments)
    except (ResourceFailure, StokerError) as error:
        fail(session, failing or began, error, stack_too=planned)
        return False
    return finish_action(session, began, outcome, planned=planned)


def finish_action(session: StackSession, resource: Resource, outcome: Outcome, *, planned: bool = True) -> bool:
    """Apply the outcome of an action. Return whether the action is done. ``planned``: a step of the plan awaits it."""
    updated = _with(resource, outcome)
    if not outcome.done:
        updated = replace(updated, reason=outcome.reason or updated.reason)
        if planned:
            session.wait_for(updated, key_of(session, updated))
        else:
            session.resources.change(updated)
        return False
    done = replace(updated, status=Status.COMPLETE, reason=outcome.reason or CHANGED, operation=None)
    session.record(done)
    hooks = done.definition.get("hooks") if planned else None
    hook = find_hook(session, hooks, "post", done.action) if hooks else None
    if hook is not None:
        session.wait_for(pause(session, done, hook, done.action), key_of(session, done))
        return False
    finish(session, done)
    return True


def finish(session: StackSession, done: Resource) -> None:
    """
    Write a resource whose action is done, or drop the resource if the action was DELETE.

    As in Heat, a CHECK follows the ADOPT of an existing object (``external_id``): the ADOPT has read the object.
    """
    if done.action in (Action.DELETE, Action.SUSPEND) and needs_access(session, session.type_of(done)):
        (agent_access.delete if done.action is Action.DELETE else agent_access.disable)(session.context, done)
    if done.action is Action.DELETE:
        session.resources.drop(done)
    elif done.action is Action.ADOPT and done.definition.get("external_id"):
        for status in (Status.IN_PROGRESS, Status.COMPLETE):
            checked = replace(done, action=Action.CHECK, status=status, reason=CHANGED)
            session.record(checked)
        session.resources.change(checked)
    else:
        session.resources.change(done)


def fail(session: StackSession, resource: Resource, error: Exception, *, stack_too: bool = True) -> None:
    """
    Fail the action on a resource. If the stack waits for it (``stack_too``), the operation fails too, after all other
    steps if the resource ``may_fail``.
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
    session.record(refused)
    _fail_operation(session, refused, _reason(resource, error))


def describe_failure(resource: Resource, error: Exception, action: Action) -> str:
    """Return Heat's reason of an operation that failed because ``action`` failed on the resource."""
    return f"Resource {action} failed: {_reason(resource, error)}"


def _fail_operation(session: StackSession, failed: Resource, reason: str) -> None:
    words = f"Resource {failed.action} failed: {reason}"
    if failed.definition.get("may_fail") and phase_of(failed) is Phase.APPLY:
        session.set(failure=session.stack.failure or words)
        end_step(session, key_of(session, failed))
    else:
        operation.fail(session, words)


def end_step(session: StackSession, key: str) -> None:
    """Remove a step from the plan and queue the steps that waited only for this step."""
    session.todo.extend(session.plan.end(key))
    session.set(remaining=session.stack.remaining - 1)


def key_of(session: StackSession, resource: Resource) -> str:
    """
    Return the key of the step that the end of the resource's present action ends: the name if the action brings a
    definition to the resource, else the id, because one name may have several incarnations.
    """
    applies = session.stack.phase is Phase.APPLY and phase_of(resource) is Phase.APPLY
    return resource.name if applies else resource.id


def wait_for(session: StackSession, name: str, ids: Iterable[str]) -> None:
    """
    Let the apply step of the resource ``name`` wait for steps of other resources, by their ids. Then it runs again,
    from its beginning.
    """
    for id in ids:
        resource = session.resources.find_by_id(id)
        if session.plan.insert(id, name, is_started=resource is not None and session.awaits(resource)):
            session.todo.append(id)
            session.set(remaining=session.stack.remaining + 1)
        elif session.plan.state(id) is StepState.PAUSED and resource is not None and not resource.hook:
            session.todo.append(id)  # it waits for access, which a resource that goes does not need


def phase_of(resource: Resource) -> Phase:
    """Return the phase to which the resource's present action belongs."""
    if resource.action is Action.DELETE:
        return Phase.CLEANUP
    return Phase.APPLY if resource.action in (Action.CREATE, Action.UPDATE, Action.ADOPT) else Phase.ACTION


def _with(resource: Resource, outcome: Outcome) -> Resource:
    """Return the resource with the physical id and the data of an outcome. Its user does not belong to its type."""
    data = resource.data if outcome.data is None else outcome.data
    if USER in resource.data:
        data = {**data, USER: resource.data[USER]}
    return replace(resource, physical_id=outcome.physical_id or resource.physical_id, data=data)


def _reason(resource: Resource, error: Exception) -> str:
    """Return the reason with Heat's path to the failed resource: ``resources.group.resources.0: …``."""
    # PostgreSQL refuses NUL in text columns.
    message = str(error).replace("\0", "")
    if isinstance(error, NestedFailure):
        return f"{error.kind}: resources.{resource.name}{message}"
    kind = type(error).__name__ if isinstance(error, StokerError) else getattr(error, "kind", "Error")
    return f"{kind}: resources.{resource.name}: {clip(message)}"
