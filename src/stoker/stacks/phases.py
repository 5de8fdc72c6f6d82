"""How operations and their phases begin and end: apply, then clean up, then say so; or fail, and maybe go back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.stacks import plan as plans
from stoker.stacks.engine import ADVANCE, DEADLINE
from stoker.stacks.plan import NewPlan
from stoker.stacks.prepare import Identity, Prepared, prepare_again
from stoker.stacks.transition import Transition
from stoker.store import resources, stacks, steps

#: Actions that lead to ROLLBACK when they fail and the stack wants that.
_REVERSIBLE = (Action.CREATE, Action.UPDATE)


def begin_operation(transition: Transition, action: Action, **changes: Any) -> None:
    """A new operation; whatever the one before still had to do is forgotten."""
    _forget_plan(transition)
    transition.set(
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        traversal=str(uuid4()),
        failure=None,
        **changes,
    )
    transition.stack_event()


def begin_apply(transition: Transition, action: Action, prepared: Prepared, **changes: Any) -> list[str]:
    """Lead the stack to ``prepared``. Returns the steps that wait for nothing."""
    stacks.set_source(transition.tx, transition.stack.id, prepared.source)
    begin_operation(transition, action, **prepared.facts(), **changes)
    present = resources.of_stack(transition.tx, transition.stack.id)
    transition.read_all(present)
    for each in present:
        if each.current and each.name not in prepared.definitions:
            transition.retire(each)
    return _begin_phase(transition, Phase.APPLY, plans.forward(prepared.needs), prepared.definitions)


def begin_create(transition: Transition, prepared: Prepared) -> list[str]:
    """The first operation of a stack: there is nothing to compare with."""
    transition.read_all(())
    transition.stack_event()
    return _begin_phase(transition, Phase.APPLY, plans.forward(prepared.needs), prepared.definitions)


def begin_delete(transition: Transition, action: Action = Action.DELETE) -> list[str]:
    """Remove everything the stack has."""
    begin_operation(transition, action, updated_at=transition.tx.now)
    return _begin_cleaning(transition, resources.of_stack(transition.tx, transition.stack.id))


def end_phase(transition: Transition) -> list[str] | None:
    """Everything of this phase is done: the next phase's first steps, or None when the operation is complete."""
    if transition.stack.phase is Phase.APPLY and transition.stack.action is not Action.CREATE:
        transition.save()
        leftovers = resources.leftover(transition.tx, transition.stack.id)
        if leftovers:
            return _begin_cleaning(transition, leftovers)
    _end(transition, Status.COMPLETE, f"Stack {transition.stack.action} completed successfully")
    if transition.stack.action is Action.DELETE:
        transition.set(deleted_at=transition.tx.now)
    else:
        stacks.keep_source(transition.tx, transition.stack.id)
    return None


def fail(transition: Transition, reason: str) -> list[str] | None:
    """The operation failed; what still runs ends by itself. With rollback wanted: the way back's first steps."""
    failed = transition.stack.action
    transition.set(failure=reason)
    _end(transition, Status.FAILED, reason)
    if failed not in _REVERSIBLE or transition.stack.disable_rollback:
        return None
    transition.save()
    return begin_rollback(transition)


def begin_rollback(transition: Transition) -> list[str]:
    """Back to the last source that was applied whole; without one, back to nothing."""
    stack = transition.stack
    previous = stacks.previous(transition.tx, stack.id)
    if previous is None:
        return begin_delete(transition, Action.ROLLBACK)
    identity = Identity(stack.id, stack.name, stack.project_id)
    prepared = prepare_again(transition.engine, previous, identity)
    return begin_apply(transition, Action.ROLLBACK, prepared, updated_at=transition.tx.now)


def close(transition: Transition) -> None:
    """Last thing in a transaction: write what changed, and set a deadline to an operation that goes on."""
    transition.save()
    stack = transition.stack
    if stack.status is not Status.IN_PROGRESS or _began_before(transition):
        return
    seconds = stack.timeout_mins * 60 if stack.timeout_mins else transition.engine.limits.action_timeout
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    at = transition.tx.now + timedelta(seconds=seconds)
    transition.engine.services.work.defer(transition.tx, DEADLINE, stack.id, args, at=at)


def _began_before(transition: Transition) -> bool:
    return not transition.created and transition.stack.traversal == transition.before.traversal


def _begin_cleaning(transition: Transition, leftovers: list[Resource]) -> list[str]:
    transition.read_all(leftovers)
    return _begin_phase(transition, Phase.CLEAN, plans.backward(leftovers), {})


def _begin_phase(
    transition: Transition,
    phase: Phase,
    needs: Mapping[str, Collection[str]],
    definitions: Mapping[str, Mapping[str, Any]],
) -> list[str]:
    plan = NewPlan(transition.tx, transition.stack.id, needs, definitions)
    transition.plan = plan
    transition.set(phase=phase, remaining=len(plan))
    return plan.ready(len(plan))


def _end(transition: Transition, status: Status, reason: str) -> None:
    transition.set(status=status, reason=reason, phase=Phase.IDLE, remaining=0)
    transition.stack_event()
    _forget_plan(transition)


def _forget_plan(transition: Transition) -> None:
    """Stored steps, continuation and deadline exist only when the operation outlived its first transaction."""
    if not transition.created and transition.before.status is Status.IN_PROGRESS:
        work = transition.engine.services.work
        work.cancel(transition.tx, DEADLINE, transition.stack.id)
        work.cancel(transition.tx, ADVANCE, transition.stack.id)
        steps.clear(transition.tx, transition.stack.id)
    transition.plan = NewPlan(transition.tx, transition.stack.id, {}, {})
