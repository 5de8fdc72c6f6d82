"""
Move a stack as far as what is known allows, inside the transaction that made it known.

Whoever commits a fact (a request, a signal, a finished job, a passed deadline) calls in here; nothing waits by
polling. A step's cost is its own: the resource it is about and the steps that waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from stoker.model.errors import InvalidBreakPointHook, StokerError
from stoker.model.stack import Phase, Resource
from stoker.model.status import Status
from stoker.resources.base import ResourceFailure
from stoker.stacks import phases
from stoker.stacks.acting import end_step, fail, finish, key_of, phase_of, settle
from stoker.stacks.applying import apply_step
from stoker.stacks.engine import ADVANCE
from stoker.stacks.transition import Transition
from stoker.stacks.visiting import clean_step, visit_step

_STEPS: Mapping[Phase, Callable[[Transition, str], bool]] = {
    Phase.APPLY: apply_step,
    Phase.CLEAN: clean_step,
    Phase.VISIT: visit_step,
}


def advance(transition: Transition) -> None:
    """Run what is to be done, and what that frees, up to the transaction's share; begin the phases that follow."""
    left = transition.engine.limits.steps_per_transaction
    while transition.stack.phase is not Phase.IDLE:
        if transition.stack.remaining == 0:
            phases.end_phase(transition)
        elif not transition.todo:
            return
        elif left == 0:
            _go_on_later(transition)
            return
        else:
            left -= 1
            key = transition.todo.popleft()
            if _STEPS[transition.stack.phase](transition, key):
                end_step(transition, key)


def wake(transition: Transition, resource: Resource, failure: str | None = None) -> None:
    """Somebody reported on a resource that was waiting: see how it stands, and go on from there."""
    if resource.status is not Status.IN_PROGRESS:
        return
    # A resource of an operation that was superseded or has failed already ends quietly.
    waited_for = _is_waited_for(transition, resource)
    try:
        if failure is not None:
            raise ResourceFailure(failure)
        outcome = transition.type_of(resource).check(transition.context, resource)
    except (ResourceFailure, StokerError) as error:
        fail(transition, resource, error, stack_too=waited_for)
    else:
        if settle(transition, resource, outcome, planned=waited_for) and waited_for:
            end_step(transition, key_of(resource))
    advance(transition)


def clear_hook(transition: Transition, resource: Resource, hook: str) -> None:
    """The breakpoint is unset: what stood there goes on. Raises InvalidBreakPointHook when nothing does."""
    if resource.hook != hook:
        raise InvalidBreakPointHook(f'The "{hook}" hook is not defined on {resource.type} "{resource.name}"')
    cleared = replace(resource, hook=None)
    transition.change(cleared)
    transition.event(replace(cleared, reason=f"Hook {hook} is cleared"))
    when, _, action = hook.partition("-")
    key = cleared.id if action == "delete" else cleared.name
    if transition.plan.is_running(key):
        if when == "post":
            finish(transition, cleared)
            end_step(transition, key)
        else:
            step = clean_step if action == "delete" else apply_step
            if step(transition, key, past_hook=True):
                end_step(transition, key)
    advance(transition)


def _is_waited_for(transition: Transition, resource: Resource) -> bool:
    phase = phase_of(resource)
    return (
        transition.stack.phase is phase
        and (resource.current or phase is Phase.CLEAN)
        and transition.plan.is_running(key_of(resource))
    )


def _go_on_later(transition: Transition) -> None:
    """The rest is stored as steps that wait for nothing: the next transaction finds them."""
    stack = transition.stack
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    transition.engine.services.work.defer(transition.tx, ADVANCE, stack.id, args)
