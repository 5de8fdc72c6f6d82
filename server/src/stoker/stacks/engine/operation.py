"""Operations and their phases: apply, clean up, complete; or fail and roll back. And the release of what they keep."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import ActionInProgress
from stoker.model.stack import Action, Phase, Resource, Stack, Status
from stoker.resources.base import KEEPS_OBJECT, WAKE, SavesState
from stoker.stacks.engine import ADVANCE, DEADLINE, Engine
from stoker.stacks.engine import plan as plans
from stoker.stacks.engine.plan import NewPlan
from stoker.stacks.engine.session import StackSession
from stoker.stacks.templates.prepare import ResolvedStack, prepare_again
from stoker.store import deployments, resources, server_lists, servers, stacks, steps
from stoker.store.tx import Tx

#: Key of a snapshot's data for what clouds have saved, by the name of the resource.
SAVED = "saved"


def end_snapshot(session: StackSession, *, is_superseded: bool = False) -> None:
    """End the snapshot in progress with the operation that has ended, or fail it because another operation begins."""
    stack = session.stack
    if stack.action is not Action.SNAPSHOT or (stack.status is Status.IN_PROGRESS) is not is_superseded:
        return
    status, reason = stack.status, stack.reason
    if is_superseded:
        status, reason = Status.FAILED, "Another operation of the stack has superseded the snapshot."
    for snapshot in stacks.snapshots_in_progress(session.tx, stack.id):
        data = {**snapshot.data, SAVED: _saved(session)}
        stacks.save_snapshot(session.tx, replace(snapshot, status=status, reason=reason, data=data))


def _saved(session: StackSession) -> dict[str, Mapping[str, Any]]:
    saved = {}
    for resource in resources.of_stack(session.tx, session.stack.id):
        kind = session.type_of(resource)
        if resource.current and resource.action is Action.SNAPSHOT and isinstance(kind, SavesState):
            saved[resource.name] = kind.saved(session.context, resource)
    return {name: ids for name, ids in saved.items() if ids}


#: Actions that lead to ROLLBACK when they fail, unless the stack disables rollback.
_REVERSIBLE = (Action.CREATE, Action.UPDATE, Action.RESTORE)


def begin_operation(session: StackSession, action: Action, **changes: Any) -> None:
    """Start a new operation. Remaining steps of the previous operation are dropped, and its breakpoints cleared."""
    forget_plan(session)
    for resource in session.resources.load_all():
        if resource.hook is not None:
            session.resources.change(replace(resource, hook=None))
    end_snapshot(session, is_superseded=True)
    session.set(
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        traversal=str(uuid4()),
        failure=None,
        **changes,
    )
    session.record(id=session.stack.traversal)


def begin_apply(session: StackSession, action: Action, resolved: ResolvedStack, **changes: Any) -> None:
    """Start an operation that brings the stack to ``resolved``."""
    begin_operation(session, action, **resolved.facts(), **changes)
    # now the transaction knows the secrets, so the source can be encrypted
    stacks.set_source(session.tx, session.stack.id, resolved.source)
    for resource in session.resources.load_all():
        if resource.current and resource.name not in resolved.definitions:
            session.resources.retire(resource)
    _begin_phase(session, Phase.APPLY, resolved.needs, resolved.definitions)


def begin_create(session: StackSession, resolved: ResolvedStack, placeholders: Iterable[Resource] = ()) -> None:
    """Start the first operation of a stack. ``placeholders``: resources to adopt."""
    session.resources.preload(())
    for placeholder in placeholders:
        session.resources.change(placeholder)
    session.record(id=session.stack.traversal)
    _begin_phase(session, Phase.APPLY, resolved.needs, resolved.definitions)


def begin_delete(session: StackSession, action: Action = Action.DELETE) -> None:
    """Start an operation that removes all resources of the stack."""
    begin_operation(session, action, updated_at=session.tx.now)
    _begin_cleanup(session, session.resources.load_all())


def begin_action(session: StackSession, action: Action) -> None:
    """Start an action on all resources: SUSPEND begins with those that use others, any other with the used ones."""
    begin_operation(session, action, updated_at=session.tx.now)
    everything = session.resources.load_all()
    present = [resource for resource in everything if resource.current and resource.action is not Action.INIT]
    order = plans.backward if action is Action.SUSPEND else plans.forward
    _begin_phase(session, Phase.ACTION, order(present), {})


def begin_snapshot(session: StackSession, resource_ids: Iterable[str]) -> None:
    """Start an operation that saves these resources at their cloud, all at once."""
    begin_operation(session, Action.SNAPSHOT)
    _begin_phase(session, Phase.ACTION, {id: () for id in resource_ids}, {})


def end_phase(session: StackSession) -> None:
    """End a phase without remaining steps: start the next phase or end the operation."""
    if session.stack.phase is Phase.APPLY and session.stack.action not in (Action.CREATE, Action.ADOPT):
        session.save()
        outdated = resources.outdated(session.tx, session.stack.id)
        if outdated:
            _begin_cleanup(session, outdated)
            return
    if session.stack.failure:
        fail(session, session.stack.failure)  # a resource with ``may_fail`` failed, and the others have ended
        return
    _end(session, Status.COMPLETE, f"Stack {session.stack.action} completed successfully")
    if session.stack.action is Action.DELETE:
        session.set(deleted_at=session.tx.now)
        stacks.forget_previous_source(session.tx, session.stack.id)
    else:
        stacks.keep_source(session.tx, session.stack.id)


def refuse_busy(stack: Stack) -> None:
    """Raise ActionInProgress for a busy stack, on behalf of operations that neither wait nor supersede."""
    if stack.status is Status.IN_PROGRESS:
        raise ActionInProgress(f"Stack {stack.name} already has an action ({stack.action}) in progress.")


def refuse_refresh(tx: Tx, stack: Stack) -> None:
    """Raise ActionInProgress while a group in the stack changes its members, which is no operation of the stack."""
    if stack.parent_id:
        return  # the check was made for the root of the tree
    for resource_id, _ in server_lists.selectors_of(tx, stack.project_id):
        group = resources.find(tx, resource_id)
        if group is None or group.status is not Status.IN_PROGRESS:
            continue
        if stacks.get(tx, group.stack_id).root_id == stack.id:
            raise ActionInProgress(f"Group {group.name} of stack {stack.name} is changing its members: wait for that.")


def fail(session: StackSession, reason: str, *, rollback: bool = True) -> None:
    """Fail the operation. Resources in progress end by themselves. Starts the rollback if the stack wants one."""
    failed = session.stack.action
    session.set(failure=reason)
    _end(session, Status.FAILED, reason)
    if rollback and failed in _REVERSIBLE and not session.stack.disable_rollback:
        session.save()
        begin_rollback(session)


def begin_rollback(session: StackSession) -> None:
    """Roll back to the last source that was applied completely, or delete all resources if there is none."""
    stack = session.stack
    previous = stacks.previous(session.tx, stack.id)
    if previous is None:
        begin_delete(session, Action.ROLLBACK)
        return
    files = previous.files if stack.id == stack.root_id else stacks.source(session.tx, stack.root_id).files
    # The failed operation may have used up the budget; the rollback must not fail for this reason.
    budget = session.engine.renew_budget(session.tx)
    resolved = prepare_again(session.engine, stack, previous, budget, files)
    begin_apply(session, Action.ROLLBACK, resolved, updated_at=session.tx.now)


def _begin_cleanup(session: StackSession, outdated: list[Resource]) -> None:
    session.resources.preload(outdated)
    _begin_phase(session, Phase.CLEANUP, plans.backward(outdated), {})


def _begin_phase(
    session: StackSession,
    phase: Phase,
    needs: Mapping[str, Collection[str]],
    definitions: Mapping[str, Mapping[str, Any]],
) -> None:
    plan = NewPlan(session.tx, session.stack.id, needs, definitions)
    session.plan = plan
    session.set(phase=phase, remaining=len(plan))
    session.todo = deque(plan.ready(len(plan)))


def _end(session: StackSession, status: Status, reason: str) -> None:
    if status is Status.FAILED:
        session.add_unreached()
    session.set(status=status, reason=reason, phase=Phase.IDLE, remaining=0)
    session.todo.clear()
    session.ended = True
    session.record()
    forget_plan(session)


def forget_plan(session: StackSession) -> None:
    """Drop stored steps, continuation and deadline, which exist if the operation outlasted its first transaction."""
    if not session.created and session.before.status is Status.IN_PROGRESS:
        work = session.engine.env.work
        work.cancel(session.tx, DEADLINE, session.stack.id)
        work.cancel(session.tx, ADVANCE, session.stack.id)
        steps.clear(session.tx, session.stack.id)
    session.plan = NewPlan(session.tx, session.stack.id, {}, {})
    session.open_gates.clear()


def disown(tx: Tx, engine: Engine, resource: Resource) -> None:
    """Release a resource's server or deployment, so that it can be deleted alone or adopted by another stack."""
    engine.env.work.cancel(tx, WAKE, resource.id)
    server_lists.remove_selector(tx, resource.id)
    if resource.physical_id:
        deployments.disown(tx, resource.physical_id, resource.id)
        servers.disown(tx, resource.physical_id, resource.id)


def keep_adopted(tx: Tx, root: Stack) -> None:
    """Let the deletion of a tree leave the objects that it has adopted: another stack may use them, or adopt them."""
    for member in stacks.tree(tx, root.id):
        adopted = [resource for resource in resources.of_stack(tx, member.id) if resource.action is Action.ADOPT]
        resources.save_all(tx, [replace(item, data={**item.data, KEEPS_OBJECT: True}) for item in adopted])


def retain(session: StackSession, resource: Resource) -> None:
    """
    Release a resource with ``deletion_policy: Retain``.

    The objects and queues for its document and results are deleted, because they serve only the resource. For a nested
    stack, all of its resources are retained, and the stack itself is deleted.
    """
    session.type_of(resource).retain(session.context, resource)
    disown(session.tx, session.engine, resource)
    inner = stacks.find(session.tx, resource.physical_id) if resource.physical_id else None
    if inner is not None and inner.parent_resource_id == resource.id:
        inside = StackSession(session.tx, session.engine, inner)
        for member in inside.resources.load_all():
            retain(inside, member)
        delete_alone(inside, "Stack DELETE completed successfully")
        inside.save()


def delete_alone(session: StackSession, reason: str) -> None:
    """Delete a stack and the rows of its resources, whose objects stay."""
    resources.delete_all(session.tx, [resource.id for resource in session.resources.load_all()])
    forget_plan(session)  # a failed operation leaves steps that were not reached
    session.set(action=Action.DELETE, status=Status.COMPLETE, reason=reason, deleted_at=session.tx.now)
    session.record()
