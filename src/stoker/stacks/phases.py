"""How operations and their phases begin and end: apply, then clean up, then say so; or fail, and maybe go back."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import uuid4

from stoker.model.errors import ActionInProgress
from stoker.model.stack import Phase, Resource, Stack
from stoker.model.status import Action, Status
from stoker.stacks import plan as plans
from stoker.stacks.engine import ADVANCE, DEADLINE
from stoker.stacks.plan import NewPlan
from stoker.stacks.prepare import Identity, Prepared, prepare_again
from stoker.stacks.transition import Transition
from stoker.store import resources, stacks, steps

#: Actions that lead to ROLLBACK when they fail and the stack wants that.
_REVERSIBLE = (Action.CREATE, Action.UPDATE, Action.RESTORE)


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


def begin_apply(transition: Transition, action: Action, prepared: Prepared, **changes: Any) -> None:
    """Lead the stack to ``prepared``."""
    stacks.set_source(transition.tx, transition.stack.id, prepared.source)
    begin_operation(transition, action, **prepared.facts(), **changes)
    if transition.stack.parameters.get("hidden"):
        transition.save_stack()  # the stacks inside ask what is hidden around them
    present = resources.of_stack(transition.tx, transition.stack.id)
    transition.read_all(present)
    for each in present:
        if each.current and each.name not in prepared.definitions:
            transition.retire(each)
    _begin_phase(transition, Phase.APPLY, plans.forward(prepared.needs), prepared.definitions)


def begin_create(transition: Transition, prepared: Prepared, stand_ins: Iterable[Resource] = ()) -> None:
    """The first operation of a stack: there is nothing to compare with, but perhaps something to adopt."""
    transition.read_all(())
    for each in stand_ins:
        transition.add(each)
    transition.stack_event()
    _begin_phase(transition, Phase.APPLY, plans.forward(prepared.needs), prepared.definitions)


def begin_delete(transition: Transition, action: Action = Action.DELETE) -> None:
    """Remove everything the stack has."""
    begin_operation(transition, action, updated_at=transition.tx.now)
    _begin_cleaning(transition, resources.of_stack(transition.tx, transition.stack.id))


def begin_visit(transition: Transition, action: Action) -> None:
    """Do ``action`` to everything the stack has: users first when they are put to rest, else last."""
    begin_operation(transition, action, updated_at=transition.tx.now)
    everything = resources.of_stack(transition.tx, transition.stack.id)
    transition.read_all(everything)
    present = [each for each in everything if each.current and each.action is not Action.INIT]
    order = plans.backward if action is Action.SUSPEND else plans.forward_by_id
    _begin_phase(transition, Phase.VISIT, order(present), {})


def pass_through(transition: Transition, action: Action) -> None:
    """An action that does nothing to any resource."""
    begin_operation(transition, action)
    _end(transition, Status.COMPLETE, f"Stack {action} completed successfully")


def end_phase(transition: Transition) -> None:
    """Everything of this phase is done: begin the next, or say that the operation is complete."""
    if transition.stack.phase is Phase.APPLY and transition.stack.action not in (Action.CREATE, Action.ADOPT):
        transition.save()
        leftovers = resources.leftover(transition.tx, transition.stack.id)
        if leftovers:
            _begin_cleaning(transition, leftovers)
            return
    if transition.stack.failure:
        fail(transition, transition.stack.failure)  # of one that ended nobody else's turn
        return
    _end(transition, Status.COMPLETE, f"Stack {transition.stack.action} completed successfully")
    if transition.stack.action is Action.DELETE:
        transition.set(deleted_at=transition.tx.now)
    else:
        stacks.keep_source(transition.tx, transition.stack.id)


def refuse_busy(stack: Stack) -> None:
    """Raises ActionInProgress: what is asked for waits for no operation and supersedes none."""
    if stack.status is Status.IN_PROGRESS:
        raise ActionInProgress(f"Stack {stack.name} already has an action ({stack.action}) in progress.")


def fail(transition: Transition, reason: str, *, rollback: bool = True) -> None:
    """The operation failed; what still runs ends by itself. With rollback wanted, the way back begins."""
    failed = transition.stack.action
    transition.set(failure=reason)
    _end(transition, Status.FAILED, reason)
    if rollback and failed in _REVERSIBLE and not transition.stack.disable_rollback:
        transition.save()
        begin_rollback(transition)


def begin_rollback(transition: Transition) -> None:
    """Back to the last source that was applied whole; without one, back to nothing."""
    stack = transition.stack
    previous = stacks.previous(transition.tx, stack.id)
    if previous is None:
        begin_delete(transition, Action.ROLLBACK)
        return
    identity = Identity(stack.id, stack.name, stack.project_id)
    files = previous.files if stack.id == stack.root_id else stacks.source(transition.tx, stack.root_id).files
    prepared = prepare_again(transition.engine, previous, identity, files)
    begin_apply(transition, Action.ROLLBACK, prepared, updated_at=transition.tx.now)


def set_deadline(transition: Transition) -> None:
    """An operation that began in this transaction and goes on must end some time."""
    stack = transition.stack
    if stack.status is not Status.IN_PROGRESS or _began_before(transition) or stack.parent_id:
        return  # a nested stack's time is its root's
    seconds = stack.timeout_mins * 60 if stack.timeout_mins else transition.engine.limits.action_timeout
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    at = transition.tx.now + timedelta(seconds=seconds)
    transition.engine.services.work.defer(transition.tx, DEADLINE, stack.id, args, at=at)


def _began_before(transition: Transition) -> bool:
    return not transition.created and transition.stack.traversal == transition.before.traversal


def _begin_cleaning(transition: Transition, leftovers: list[Resource]) -> None:
    transition.read_all(leftovers)
    _begin_phase(transition, Phase.CLEAN, plans.backward(leftovers), {})


def _begin_phase(
    transition: Transition,
    phase: Phase,
    needs: Mapping[str, Collection[str]],
    definitions: Mapping[str, Mapping[str, Any]],
) -> None:
    plan = NewPlan(transition.tx, transition.stack.id, needs, definitions)
    transition.plan = plan
    transition.set(phase=phase, remaining=len(plan))
    transition.todo = deque(plan.ready(len(plan)))


def _end(transition: Transition, status: Status, reason: str) -> None:
    transition.set(status=status, reason=reason, phase=Phase.IDLE, remaining=0)
    transition.todo.clear()
    transition.ended = True
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
