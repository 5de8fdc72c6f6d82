"""What users do with stacks. Each runs inside one transaction and leaves the stack under way, done or failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from stoker.deployments.policy import Tree
from stoker.model.errors import EntityNotFound, NotSupported, RequestLimitExceeded
from stoker.model.stack import Phase, Stack
from stoker.model.status import Action, Status
from stoker.stacks import foresight, phases
from stoker.stacks.adoption import stand_ins
from stoker.stacks.advance import advance
from stoker.stacks.closing import close
from stoker.stacks.engine import Engine
from stoker.stacks.foresight import Deploys
from stoker.stacks.prepare import Identity, Prepared
from stoker.stacks.selecting import refuse_regrouping
from stoker.stacks.transition import Transition
from stoker.store import resources, stacks
from stoker.store.tx import Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """None: as it was."""

    timeout_mins: int | None = None
    disable_rollback: bool | None = None
    tags: Sequence[str] | None = None


def create(
    tx: Tx,
    engine: Engine,
    prepared: Prepared,
    options: Options,
    identity: Identity,
    *,
    username: str,
    adopt: Mapping[str, Any] | None = None,
) -> Stack:
    """
    ``adopt``: what its resources take over, see ``moving``.

    Raises StackExists, RequestLimitExceeded, DeploymentRefused.
    """
    check_limit(tx, engine, identity.project_id)
    stack = new_stack(
        tx,
        prepared,
        options,
        stack_id=identity.stack_id,
        name=identity.stack_name,
        project_id=identity.project_id,
        username=username,
        action=Action.CREATE if adopt is None else Action.ADOPT,
    )
    if adopt is None:
        refuse_deployments(tx, engine, stack, prepared, prepared.deploys)
    return begin(tx, engine, stack, prepared, adopt=adopt)


def refuse_deployments(tx: Tx, engine: Engine, stack: Stack, prepared: Prepared, deploys: Sequence[Deploys]) -> None:
    """Raises DeploymentRefused for what a server's policy is known to refuse."""
    foresight.refuse(
        tx,
        engine.services.gate,
        deploys,
        stack=Tree(stack.id, stack.name),
        project_id=stack.project_id,
        who=stack.username,
        stands_for=prepared.stands_for,
    )


def check_limit(tx: Tx, engine: Engine, project_id: str) -> None:
    limit = engine.limits.stacks_per_project
    if 0 <= limit <= stacks.count(tx, project_id):
        raise RequestLimitExceeded(f"this project may have {limit} stacks and has them: delete some")


def new_stack(
    tx: Tx,
    prepared: Prepared,
    options: Options,
    *,
    stack_id: str,
    name: str,
    project_id: str,
    username: str,
    action: Action = Action.CREATE,
    **more: Any,
) -> Stack:
    """A stack that is about to begin; ``more`` says where a nested one lives."""
    return Stack(
        id=stack_id,
        name=name,
        project_id=project_id,
        username=username,
        action=action,
        status=Status.IN_PROGRESS,
        reason=f"Stack {action} started",
        **prepared.facts(),
        tags=tuple(options.tags or ()),
        timeout_mins=options.timeout_mins,
        disable_rollback=options.disable_rollback is not False,
        created_at=tx.now,
        traversal=str(uuid4()),
        phase=Phase.APPLY,
        **{"root_id": stack_id, "user_project_id": project_id, **more},
    )


def begin(
    tx: Tx,
    engine: Engine,
    stack: Stack,
    prepared: Prepared,
    *,
    adopt: Mapping[str, Any] | None = None,
    quiet: bool = False,
) -> Stack:
    """The first operation of a new stack."""
    stacks.add(tx, stack, prepared.source)
    transition = Transition(tx, engine, stack, created=True)
    phases.begin_create(transition, prepared, stand_ins(tx, stack.id, prepared, adopt or {}))
    return _run(transition, quiet=quiet)


def update(
    tx: Tx,
    engine: Engine,
    stack_id: str,
    prepared: Prepared,
    options: Options,
    *,
    action: Action = Action.UPDATE,
    quiet: bool = False,
) -> Stack:
    """A running operation is superseded. Raises NotSupported for a stack that is going or suspended."""
    stack = stacks.get(tx, stack_id, hold=True)
    refuse_update(stack)
    transition = Transition(tx, engine, stack)
    transition.parameters.check_update(prepared.parameters)
    if prepared.deploys and stack.parent_id is None:
        # What is there already may stay as it is; when it runs anew its server's policy is asked then.
        there = {each.name for each in resources.of_stack(tx, stack.id) if each.current}
        new = [each for each in prepared.deploys if each.top not in there]
        refuse_deployments(tx, engine, stack, prepared, new)
    changes: dict[str, Any] = {"updated_at": tx.now}
    if options.timeout_mins is not None:
        changes["timeout_mins"] = options.timeout_mins
    if options.disable_rollback is not None:
        changes["disable_rollback"] = options.disable_rollback
    if options.tags is not None:
        changes["tags"] = tuple(options.tags)
    phases.begin_apply(transition, action, prepared, **changes)
    return _run(transition, quiet=quiet)


def refuse_update(stack: Stack) -> None:
    """Raises NotSupported."""
    if stack.action in (Action.DELETE, Action.SUSPEND):
        raise NotSupported(f"Updating a stack when it is in {stack.action}_{stack.status} is not supported.")


def delete(tx: Tx, engine: Engine, stack_id: str, *, quiet: bool = False) -> Stack:
    """Whatever is under way is given up. A stack that is being deleted goes on with that."""
    stack = stacks.get(tx, stack_id, hold=True)
    if stack.action is Action.DELETE and stack.status is not Status.FAILED:
        return stack
    transition = Transition(tx, engine, stack)
    phases.begin_delete(transition)
    return _run(transition, quiet=quiet)


#: What a stack must not be in for these; Heat refuses the same.
_NOT_AFTER = {
    Action.SUSPEND: (Action.DELETE,),
    Action.RESUME: (Action.DELETE,),
    Action.CHECK: (Action.DELETE, Action.SUSPEND),
}


def visit(tx: Tx, engine: Engine, stack_id: str, action: Action, *, quiet: bool = False) -> Stack:
    """Suspend, resume or check. Suspending what is suspended does nothing. Raises NotSupported, ActionInProgress."""
    stack = stacks.get(tx, stack_id, hold=True)
    if stack.action in _NOT_AFTER[action]:
        raise NotSupported(f"{action.capitalize()} of a stack in {stack.action}_{stack.status} is not supported.")
    if action is Action.RESUME and stack.action not in (Action.SUSPEND, Action.RESUME):
        raise NotSupported(f"Resuming a stack in {stack.action}_{stack.status} is not supported: it is not suspended.")
    if stack.action is action and stack.status is Status.COMPLETE and action is not Action.CHECK:
        return stack
    phases.refuse_busy(stack)
    refuse_regrouping(tx, stack)
    transition = Transition(tx, engine, stack)
    phases.begin_visit(transition, action)
    return _run(transition, quiet=quiet)


def cancel(tx: Tx, engine: Engine, stack_id: str, *, rollback: bool) -> Stack:
    """Stop a running update, going back to what was before it or not. Raises NotSupported."""
    stack = stacks.get(tx, stack_id, hold=True)
    allowed = (Action.UPDATE,) if rollback else (Action.UPDATE, Action.CREATE)
    if stack.status is not Status.IN_PROGRESS or stack.action not in allowed:
        states = " or ".join(f"{each}_IN_PROGRESS" for each in allowed)
        raise NotSupported(f"Cancelling a stack in {stack.action}_{stack.status} is not supported, only in {states}.")
    transition = Transition(tx, engine, stack)
    if rollback:
        phases.begin_rollback(transition)
    else:
        give_up(transition, f"User cancelled stack {stack.action}", "cancelled", rollback=False)
    return _run(transition)


def abort(tx: Tx, engine: Engine, stack: Stack) -> None:
    """What is under way in a nested stack has failed, as nobody waits for it any more."""
    transition = Transition(tx, engine, stack)
    give_up(transition, f"Stack {stack.action} aborted", "cancelled", rollback=False)
    close(transition, quiet=True)


def give_up(transition: Transition, reason: str, word: str, *, rollback: bool = True) -> None:
    """The operation failed for ``reason``; whatever it waited for has failed and is told to end."""
    present = resources.of_stack(transition.tx, transition.stack.id)
    transition.read_all(present)
    for each in present:
        if each.status is Status.IN_PROGRESS:
            why = f"{each.action} aborted (Task {each.action.lower()} from {each.type} {word})"
            transition.give_up(each, why)
            transition.type_of(each).cancel(transition.context, each)
    phases.fail(transition, reason, rollback=rollback)
    advance(transition)


def mark(tx: Tx, engine: Engine, stack_id: str, name: str, *, unhealthy: bool, reason: str) -> None:
    """Mark a resource (by name or physical id) as broken, to be replaced by the next update, or as sound again."""
    stack = stacks.get(tx, stack_id, hold=True)
    phases.refuse_busy(stack)
    transition = Transition(tx, engine, stack)
    resource = transition.resource(name) or resources.with_physical_id(tx, stack_id, name)
    if resource is None or resource.action is Action.INIT:
        raise no_resource(name, stack)
    failed = resource.action is Action.CHECK and resource.status is Status.FAILED
    if unhealthy or failed:
        status = Status.FAILED if unhealthy else Status.COMPLETE
        marked = replace(resource, action=Action.CHECK, status=status, reason=reason)
        transition.change(marked)
        transition.event(marked)
    close(transition)


def no_resource(name: str, stack: Stack) -> EntityNotFound:
    return EntityNotFound(f"The Resource ({name}) could not be found in Stack {stack.name}.")


def _run(transition: Transition, *, quiet: bool = False) -> Stack:
    advance(transition)
    close(transition, quiet=quiet)
    return transition.stack
