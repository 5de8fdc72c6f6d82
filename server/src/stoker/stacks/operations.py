"""
Operations of users on stacks, and the jobs that continue and time out operations. Each runs in one transaction, which
leaves the stack in progress, complete or failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from stoker.model.errors import EntityNotFound, NotSupported
from stoker.model.stack import Action, Phase, Resource, Stack, Status
from stoker.policy import authorizer
from stoker.policy.rules import Tree
from stoker.stacks.adoption import Adoption, add_objects, placeholders
from stoker.stacks.engine import DEADLINE, Engine, operation
from stoker.stacks.engine.progress import advance, commit, lock_stack
from stoker.stacks.engine.session import StackSession
from stoker.stacks.prechecks import Prechecks, may_represent_servers, plan_deployments
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store import resources, stacks
from stoker.store.tx import Tx
from stoker.store.tx import check_limit as limit_rows

#: Number of resources above which a stack's operations are written in the background, so that other writes need not
#: wait for them.
LARGE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of an operation. None keeps the stack's present value."""

    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    tags: tuple[str, ...] | None = None

    def changes(self) -> dict[str, Any]:
        """Return the columns of a stack's row that change."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def create(
    tx: Tx,
    engine: Engine,
    resolved: ResolvedStack,
    options: Options,
    *,
    username: str,
    adopt: Adoption | None = None,
) -> Stack:
    """Create a stack, which may ``adopt``. Raises StackExists, RequestLimitExceeded, DeploymentRefused, Conflict."""
    project_id = resolved.identity.project_id
    limit = engine.limits.stacks_per_project
    limit_rows(tx, "stacks", project_id, limit, lambda: stacks.count(tx, project_id))
    if adopt is not None:
        engine.env.provider.refuse_owned(tx, engine.types, adopt.resources, project_id)
        add_objects(tx, engine.env, adopt, project_id=project_id, requested_by=username)
    action = Action.CREATE if adopt is None else Action.ADOPT
    stack = new_stack(tx, resolved, options, username=username, action=action)
    if adopt is None:
        refuse_deployments(tx, engine, stack, resolved)
    return begin(tx, engine, stack, resolved, adopt=adopt.resources if adopt is not None else None)


def refuse_deployments(
    tx: Tx, engine: Engine, stack: Stack, resolved: ResolvedStack, listed: Iterable[Resource] = ()
) -> Prechecks:
    """
    Refuse a planned deployment that a server's policy would deny, or whose server lacks the hook; return the checks of
    the new ones. ``listed``: the resources of an updated stack, whose present deployments may stay unchanged, so only
    hooks that their new configs need in addition are checked. Raises DeploymentRefused, StackValidationFailed.
    """
    planned = list(plan_deployments(resolved.outline))
    present = {resource.name for resource in listed if resource.current}
    new = Prechecks.of(tx, stack.project_id, (each for each in planned if each.top not in present))
    standing = may_represent_servers(resolved.outline)
    new.refuse_denied(engine.env.authorizer, Tree(stack.id, stack.name), stack.username, standing=standing)
    new.refuse_missing_hooks()
    if present:
        existing = Prechecks.of(tx, stack.project_id, (each for each in planned if each.top in present))
        existing.refuse_changed_hooks(stack)
    return new


def new_stack(
    tx: Tx, resolved: ResolvedStack, options: Options, *, username: str, action: Action = Action.CREATE, **more: Any
) -> Stack:
    """Return the row of a new stack. ``more``: the place of a nested stack in its tree."""
    identity = resolved.identity
    return Stack(
        id=identity.stack_id,
        name=identity.stack_name,
        project_id=identity.project_id,
        username=username,
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        **resolved.facts(),
        created_at=tx.now,
        traversal=str(uuid4()),
        phase=Phase.APPLY,
        **{"root_id": identity.stack_id, "user_project_id": identity.project_id, **options.changes(), **more},
    )


def begin(
    tx: Tx,
    engine: Engine,
    stack: Stack,
    resolved: ResolvedStack,
    *,
    adopt: Mapping[str, Any] | None = None,
    facade: Resource | None = None,
) -> Stack:
    """Start the first operation of a new stack. ``facade``: see ``StackSession``, as for all operations."""
    stacks.add(tx, stack, resolved.source)
    session = StackSession(tx, engine, stack, created=True, facade=facade)
    operation.begin_create(session, resolved, placeholders(tx, stack.id, resolved, adopt or {}))
    return _run(session)


def update(
    tx: Tx,
    engine: Engine,
    resolved: ResolvedStack,
    options: Options,
    *,
    action: Action = Action.UPDATE,
    facade: Resource | None = None,
) -> Stack:
    """Update a stack and supersede its operation. Raises NotSupported if it is suspended or being deleted."""
    session = lock_stack(tx, engine, resolved.identity.stack_id, facade=facade)
    stack = session.stack
    if facade is None:
        refuse_update(stack)  # the update of a parent resumes and creates again what is suspended or deleted inside
    session.parameters.check_update(resolved.parameters)
    if stack.parent_id is None:
        refuse_deployments(tx, engine, stack, resolved, session.resources.load_all())
    operation.begin_apply(session, action, resolved, updated_at=tx.now, **options.changes())
    return _run(session)


def refuse_update(stack: Stack) -> None:
    """Raise NotSupported if the stack is suspended or being deleted."""
    if stack.action in (Action.DELETE, Action.SUSPEND):
        raise NotSupported(f"Updating a stack when it is in {stack.action}_{stack.status} is not supported.")


def delete(tx: Tx, engine: Engine, stack_id: str, *, facade: Resource | None = None) -> Stack:
    """Delete a stack, superseding any other operation. An incomplete adoption leaves all adopted objects."""
    session = lock_stack(tx, engine, stack_id, facade=facade)
    stack = session.stack
    if stack.action is Action.DELETE and stack.status is not Status.FAILED:
        return stack
    if stack.action is Action.ADOPT and stack.status is not Status.COMPLETE:
        operation.keep_adopted(tx, stack)
    operation.begin_delete(session)
    return _run(session)


#: The actions after which Heat, too, refuses these operations.
_NOT_AFTER = {
    Action.SUSPEND: (Action.DELETE,),
    Action.RESUME: (Action.DELETE,),
    Action.CHECK: (Action.DELETE, Action.SUSPEND),
}


def run_action(tx: Tx, engine: Engine, stack_id: str, action: Action, *, facade: Resource | None = None) -> Stack:
    """Suspend a stack that is not suspended, resume or check it. Raises NotSupported, ActionInProgress."""
    session = lock_stack(tx, engine, stack_id, facade=facade)
    stack = session.stack
    if stack.action in _NOT_AFTER[action]:
        raise NotSupported(f"{action.capitalize()} of a stack in {stack.action}_{stack.status} is not supported.")
    if action is Action.RESUME and stack.action not in (Action.SUSPEND, Action.RESUME):
        raise NotSupported(f"Resuming a stack in {stack.action}_{stack.status} is not supported: it is not suspended.")
    if stack.action is action and stack.status is Status.COMPLETE and action is not Action.CHECK:
        return stack
    operation.refuse_busy(stack)
    operation.refuse_refresh(tx, stack)
    operation.begin_action(session, action)
    return _run(session)


def cancel(tx: Tx, engine: Engine, stack_id: str, *, rollback: bool) -> Stack:
    """Stop a create or update in progress. With ``rollback``, an update is rolled back. Raises NotSupported."""
    session = lock_stack(tx, engine, stack_id)
    stack = session.stack
    allowed = (Action.UPDATE,) if rollback else (Action.UPDATE, Action.CREATE)
    if stack.status is not Status.IN_PROGRESS or stack.action not in allowed:
        states = " or ".join(f"{action}_IN_PROGRESS" for action in allowed)
        raise NotSupported(f"Cancelling a stack in {stack.action}_{stack.status} is not supported, only in {states}.")
    if rollback:
        operation.begin_rollback(session)
    else:
        abort_operation(session, f"User cancelled stack {stack.action}", "cancelled", rollback=False)
    return _run(session)


def abort(tx: Tx, engine: Engine, stack: Stack, facade: Resource) -> None:
    """Fail the operation of a nested stack that no longer has a waiting parent."""
    session = StackSession(tx, engine, stack, facade=facade)
    abort_operation(session, f"Stack {stack.action} aborted", "cancelled", rollback=False)
    commit(session)


def abort_operation(session: StackSession, reason: str, word: str, *, rollback: bool = True) -> None:
    """Fail the operation for ``reason`` and cancel all resources in progress."""
    for resource in session.resources.load_all():
        if resource.status is Status.IN_PROGRESS:
            why = f"{resource.action} aborted (Task {resource.action.lower()} from {resource.type} {word})"
            session.abandon_resource(resource, why)
            session.type_of(resource).cancel(session.context, resource)
    operation.fail(session, reason, rollback=rollback)
    advance(session)


def go_on(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: continue a plan that exceeded the limit of one transaction."""
    session = _current(tx, engine, args)
    if session is None:
        return
    limit = engine.limits.steps_per_transaction
    session.todo.extend(session.plan.ready(limit + 1))
    advance(session)
    commit(session)


def time_out(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """
    Job: abort an operation whose deadline has passed. Without ``timeout_mins`` of its own, the deadline moves while
    runs wait for their first maintenance window.
    """
    session = _current(tx, engine, args)
    if session is None:
        return
    opening = None if session.stack.timeout_mins else authorizer.first_opening(tx, session.stack.id)
    if opening is not None:
        at = opening + timedelta(seconds=engine.limits.action_timeout)
        engine.env.work.defer(tx, DEADLINE, session.stack.id, args, at=at)
    else:
        abort_operation(session, "Timed out", "timed out")
        commit(session)


def _current(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> StackSession | None:
    """Return a session of the stack if the operation for which the job was deferred is still in progress."""
    stack = stacks.find(tx, args["stack_id"], for_update=True)
    if stack is None or stack.traversal != args["traversal"] or stack.phase is Phase.IDLE:
        return None
    return StackSession(tx, engine, stack)


def mark(tx: Tx, engine: Engine, stack_id: str, name: str, *, unhealthy: bool, reason: str) -> None:
    """Mark a resource, by name or physical id, as healthy or unhealthy; the next update replaces an unhealthy one."""
    session = lock_stack(tx, engine, stack_id)
    stack = session.stack
    operation.refuse_busy(stack)
    resource = session.resources.find(name) or resources.with_physical_id(tx, stack_id, name)
    if resource is None or resource.action is Action.INIT:
        raise no_resource(name, stack)
    failed = resource.action is Action.CHECK and resource.status is Status.FAILED
    if unhealthy or failed:
        status = Status.FAILED if unhealthy else Status.COMPLETE
        marked = replace(resource, action=Action.CHECK, status=status, reason=reason)
        session.resources.change(marked)
        session.record(marked)
    commit(session)


def no_resource(name: str, stack: Stack) -> EntityNotFound:
    """Return the error for a missing resource in Heat's wording."""
    return EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")


def _run(session: StackSession) -> Stack:
    advance(session)
    commit(session)
    return session.stack
