"""
Advances a stack as far as possible, in the transaction that made progress possible.

Every transaction that makes progress possible (a request, a signal, a finished job, a passed deadline) calls this
module; nothing polls. The cost of a step depends only on its resource and the steps that waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from stoker.model.deployment import Deployment
from stoker.model.errors import InvalidBreakPointHook, StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Status
from stoker.resources.base import ResourceFailure
from stoker.stacks.engine import ADVANCE, phases
from stoker.stacks.engine.action_steps import action_step, cleanup_step
from stoker.stacks.engine.apply_steps import apply_step
from stoker.stacks.engine.resource_actions import end_step, fail, finish, finish_action, key_of, phase_of
from stoker.stacks.engine.session import StackSession

_STEPS: Mapping[Phase, Callable[[StackSession, str], bool]] = {
    Phase.APPLY: apply_step,
    Phase.CLEANUP: cleanup_step,
    Phase.ACTION: action_step,
}


#: Minimum number of steps in a transaction, even if other writers wait: each transaction has a cost of its own.
_LEAST_STEPS = 20


def advance(session: StackSession) -> None:
    """
    Run all steps that are ready, and the phases that follow, up to the limit of one transaction.

    The limit is lower while other writers wait. A job continues with the rest.
    """
    left = most = session.engine.limits.steps_per_transaction
    while session.stack.phase is not Phase.IDLE:
        if session.stack.remaining == 0:
            phases.end_phase(session)
        elif not session.todo:
            return
        elif left == 0 or (most - left >= _LEAST_STEPS and session.tx.should_yield):
            _go_on_later(session)
            return
        else:
            left -= 1
            key = session.todo.popleft()
            if _STEPS[session.stack.phase](session, key):
                end_step(session, key)


def wake(
    session: StackSession, resource: Resource, failure: str | None = None, changed: Deployment | None = None
) -> None:
    """
    Check a waiting resource after a report, and advance its stack.

    ``failure``: why the resource cannot succeed. ``changed``: the deployment that the report has changed.
    """
    if resource.status is not Status.IN_PROGRESS:
        return
    # The resource may belong to an operation that was superseded or has failed; its end changes only the resource.
    waited_for = _is_waited_for(session, resource)
    try:
        if failure is not None:
            raise ResourceFailure(failure)
        context = session.context if changed is None else replace(session.context, changed=changed)
        outcome = session.type_of(resource).check(context, resource)
    except (ResourceFailure, StokerError) as error:
        fail(session, resource, error, stack_too=waited_for)
    else:
        if finish_action(session, resource, outcome, planned=waited_for) and waited_for:
            end_step(session, key_of(resource))
    advance(session)


def clear_hook(session: StackSession, resource: Resource, hook: str) -> None:
    """Clear a breakpoint and continue its step. Raises InvalidBreakPointHook if the resource is not paused there."""
    if resource.hook != hook:
        raise InvalidBreakPointHook(f'The "{hook}" hook is not defined on {resource.type} "{resource.name}"')
    cleared = replace(resource, hook=None)
    session.resources.change(cleared)
    session.events.record(session.stack, replace(cleared, reason=f"Hook {hook} is cleared"))
    when, _, action = hook.partition("-")
    key = cleared.id if action == "delete" else cleared.name
    if session.plan.is_running(key):
        if when == "post":
            finish(session, cleared)
            end_step(session, key)
        else:
            step = cleanup_step if action == "delete" else apply_step
            if step(session, key, past_hook=True):
                end_step(session, key)
    advance(session)


def _is_waited_for(session: StackSession, resource: Resource) -> bool:
    phase = phase_of(resource)
    return (
        session.stack.phase is phase
        and (resource.current or phase is Phase.CLEANUP)
        and session.plan.is_running(key_of(resource))
    )


def _go_on_later(session: StackSession) -> None:
    """Defer a job for the rest, which is stored as steps that wait for nothing."""
    stack = session.stack
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    session.engine.env.work.defer(session.tx, ADVANCE, stack.id, args)
