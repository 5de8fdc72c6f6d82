"""Advances a stack as far as possible, in the transaction that made progress possible, and writes what has changed.

Every transaction that makes progress possible (a request, a signal, a finished job, a passed deadline) calls this
module; nothing polls. The cost of a step depends only on its resource and the steps that waited for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial

import structlog
from msgspec.structs import replace

from stoker.deployments.drift import describe_drift
from stoker.model.deployment import Cause, Deployment, DriftChanged, Owner, Removed, RunEnded, Settled
from stoker.model.errors import InvalidBreakPointHook, StokerError
from stoker.model.stack import Action, Phase, Resource, Status, StepState
from stoker.resources.base import ResourceFailure
from stoker.stacks.engine import ADVANCE, DEADLINE, REFRESH, Engine, operation
from stoker.stacks.engine.actions import end_step, fail, finish, finish_action, key_of, needs_access
from stoker.stacks.engine.operation import end_snapshot
from stoker.stacks.engine.session import StackSession
from stoker.stacks.engine.steps import action_step, apply_step, cleanup_step, fail_unstarted
from stoker.store import resources, server_lists, stacks
from stoker.store.tx import Tx, Wake

_STEPS: Mapping[Phase, Callable[[StackSession, str], bool]] = {
    Phase.APPLY: apply_step,
    Phase.CLEANUP: cleanup_step,
    Phase.ACTION: action_step,
}


#: Minimum number of steps in a transaction, even if other writers wait: each transaction has a cost of its own.
_LEAST_STEPS = 20


def advance(session: StackSession) -> None:
    """Run all steps that are ready, and the phases that follow. A job continues after the limit of a transaction."""
    left = most = session.engine.limits.steps_per_transaction
    while session.stack.phase is not Phase.IDLE:
        if session.stack.remaining == 0:
            operation.end_phase(session)
        elif not session.todo:
            return
        elif left == 0 or (most - left >= _LEAST_STEPS and session.tx.should_yield):
            # A job continues with the rest, which is stored as steps that wait for nothing.
            stack = session.stack
            args = {"stack_id": stack.id, "traversal": stack.traversal}
            session.engine.env.work.defer(session.tx, ADVANCE, stack.id, args)
            return
        else:
            left -= 1
            key = session.todo.popleft()
            if _STEPS[session.stack.phase](session, key):
                end_step(session, key)


def wake(
    session: StackSession, resource: Resource, failure: str | None = None, changed: Deployment | None = None
) -> None:
    """Check a waiting resource after a report (``changed``) or a ``failure``, and advance its stack."""
    if resource.status is not Status.IN_PROGRESS:
        return
    #: False for an action of an operation that was superseded or has failed: its end changes only the resource.
    is_awaited = session.awaits(resource)
    #: A step of the action phase waits for the end of an earlier action, before it runs its own.
    precedes = is_awaited and session.stack.phase is Phase.ACTION and resource.action is not session.stack.action
    planned = is_awaited and not precedes
    try:
        if failure is not None:
            raise ResourceFailure(failure)
        context = replace(session.context, changed=changed)
        outcome = session.type_of(resource).check(context, resource)
    except (ResourceFailure, StokerError) as error:
        fail(session, resource, error, stack_too=planned)
        has_ended = True
    else:
        has_ended = finish_action(session, resource, outcome, planned=planned)
        if has_ended and planned:
            end_step(session, key_of(session, resource))
    if has_ended and precedes:
        session.todo.append(resource.id)
    advance(session)


def clear_hook(session: StackSession, resource: Resource, hook: str) -> None:
    """Clear a breakpoint and continue its step. Raises InvalidBreakPointHook if the resource is not paused there."""
    if resource.hook != hook:
        raise InvalidBreakPointHook(f'The "{hook}" hook is not defined on {resource.type} "{resource.name}"')
    cleared = session.resources.change(replace(resource, hook=None))
    session.record(replace(cleared, reason=f"Hook {hook} is cleared"))
    when, _, action = hook.partition("-")
    key = cleared.id if action == "delete" else cleared.name
    if when == "post":
        if session.awaits(resource):
            finish(session, replace(cleared, operation=None))
            end_step(session, key)
    elif session.plan.state(key) is StepState.PAUSED:
        _open_gate(session, key)
    advance(session)


def _open_gate(session: StackSession, key: str) -> None:
    """Let a paused step begin again, before all others: a job continues with those only that wait for nothing."""
    session.open_gates.add(key)
    session.todo.appendleft(key)


def _enter_again(session: StackSession, resource: Resource, failure: str | None) -> bool:
    """Begin the step again that waits for the resource's agent to have access. Return False if no step waits for it."""
    if resource.hook or not resource.current or not needs_access(session, session.type_of(resource)):
        return False
    keys = (resource.name, resource.id)
    key = next((key for key in keys if session.plan.state(key) is StepState.PAUSED), None)
    if key is None:
        return False
    if failure is not None:
        fail_unstarted(session, key, resource, ResourceFailure(failure))
    else:
        _open_gate(session, key)
    advance(session)
    return True


_log = structlog.get_logger("stoker.stacks")


def commit(session: StackSession) -> None:
    """Write a session, set its deadline and wake the parent of a nested stack."""
    session.save()
    stack = session.stack
    is_root = stack.parent_id is None
    if session.ended and is_root:
        end_snapshot(session)
    _set_deadline(session)
    if is_root and stack.deleted_at and not session.before.deleted_at:
        _drop_grants(session)
    if session.ended and stack.phase is Phase.IDLE:
        _tell_end(session)


def _set_deadline(session: StackSession) -> None:
    """Set the deadline of an operation that began in this transaction and is still in progress."""
    stack = session.stack
    began_before = not session.created and stack.traversal == session.before.traversal
    if stack.status is not Status.IN_PROGRESS or began_before or stack.parent_id:
        return  # the deadline of the root applies to nested stacks
    seconds = stack.timeout_mins * 60 if stack.timeout_mins else session.engine.limits.action_timeout
    args = {"stack_id": stack.id, "traversal": stack.traversal}
    at = session.tx.now + timedelta(seconds=seconds)
    session.engine.env.work.defer(session.tx, DEADLINE, stack.id, args, at=at)


def _drop_grants(session: StackSession) -> None:
    """Drop what a deleted stack was allowed at Keystone."""
    for grants in (session.engine.env.stack_users, session.engine.env.provider.delegations):
        if grants is not None:
            grants.drop_stack(session.tx, session.stack)


def _tell_end(session: StackSession) -> None:
    """Wake what waits for the end of the stack's operation, and log the end."""
    stack, before = session.stack, session.before
    # A group may wait for the operation, unless the operation began in this transaction.
    if not session.created and (before.status is Status.IN_PROGRESS or before.action is Action.SUSPEND):
        for resource_id in server_lists.release_waiting(session.tx, stack.id):
            session.engine.env.work.defer_once(session.tx, REFRESH, resource_id, {"resource_id": resource_id})
    if stack.parent_id is None:
        _log_end(session)
    if stack.parent_resource_id and not session.is_within_step:
        session.tx.wake(Owner.resource(stack.parent_resource_id))


def _log_end(session: StackSession) -> None:
    """Log the end of an operation after the commit, without its reason, which may quote the output of scripts."""
    stack = session.stack
    write = partial(_log.warning if stack.status is Status.FAILED else _log.info, "stack.ended")
    fields = {"stack_id": stack.id, "stack": stack.name, "project_id": stack.project_id}
    session.tx.after_commit(partial(write, **fields, action=stack.action.value, status=stack.status.value))


def lock_stack(tx: Tx, engine: Engine, stack_id: str, *, facade: Resource | None = None) -> StackSession:
    """Lock a stack, and with it the root of its tree. Return its session. Raises EntityNotFound."""
    return StackSession(tx, engine, stacks.get(tx, stack_id, for_update=True), facade=facade)


def lock_resource(
    tx: Tx, engine: Engine, resource_id: str, stack_id: str | None = None
) -> tuple[StackSession, Resource] | None:
    """
    Lock the stack of a resource, ``stack_id`` if known. Return its session, and the resource as read after the lock;
    None if one is gone.
    """
    unlocked = resources.find(tx, resource_id) if stack_id is None else None
    stack_id = unlocked.stack_id if unlocked is not None else stack_id
    stack = stacks.find(tx, stack_id, for_update=True) if stack_id is not None else None
    if stack is None:
        return None
    session = StackSession(tx, engine, stack)
    resource = session.resources.find_by_id(resource_id)
    return (session, resource) if resource is not None else None


def advance_resource(tx: Tx, resource_id: str, wakes: Sequence[Wake], engine: Engine) -> None:
    """Check a resource after what it waits for has changed, and continue its stack. See ``Tx.wake``."""
    first = wakes[0][0]
    locked = lock_resource(tx, engine, resource_id, first.deployment.stack_id if isinstance(first, RunEnded) else None)
    if locked is None:
        return
    session, resource = locked
    for cause, tx.secrets in wakes:
        present = resource if cause is first else session.resources.find_by_id(resource_id)
        if present is not None:
            _apply(session, present, cause)
    commit(session)


def _apply(session: StackSession, resource: Resource, cause: Cause) -> None:
    match cause:
        case DriftChanged():  # the stack itself does not change
            session.record(resource, signal=describe_drift(cause.check))
        case Removed():
            is_awaited = cause.deployment.status == Status.IN_PROGRESS and resource.action is not Action.DELETE
            failure = f"The deployment ({cause.deployment.id}) was deleted." if is_awaited else None
            if cause.deployment.status == Status.IN_PROGRESS:
                wake(session, resource, failure)
        case RunEnded():
            wake(session, resource, changed=cause.deployment)
        case Settled():
            if not _enter_again(session, resource, cause.failure):
                wake(session, resource, cause.failure)
