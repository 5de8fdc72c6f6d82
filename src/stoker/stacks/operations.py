"""What users do with stacks. Each runs inside one transaction and leaves the stack under way, done or failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from stoker.model.errors import NotSupported, RequestLimitExceeded
from stoker.model.stack import Phase, Stack
from stoker.model.status import Action, Status
from stoker.stacks import phases
from stoker.stacks.advance import advance
from stoker.stacks.engine import Engine
from stoker.stacks.prepare import Prepared
from stoker.stacks.transition import Transition
from stoker.store import stacks
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
    *,
    stack_id: str,
    name: str,
    project_id: str,
    username: str,
) -> Stack:
    """Raises StackExists, RequestLimitExceeded."""
    limit = engine.limits.stacks_per_project
    if 0 <= limit <= stacks.count(tx, project_id):
        raise RequestLimitExceeded(f"this project may have {limit} stacks and has them: delete some")
    stack = Stack(
        id=stack_id,
        name=name,
        project_id=project_id,
        username=username,
        user_project_id=project_id,
        action=Action.CREATE,
        status=Status.IN_PROGRESS,
        reason="Stack CREATE started",
        **prepared.facts(),
        tags=tuple(options.tags or ()),
        timeout_mins=options.timeout_mins,
        disable_rollback=options.disable_rollback is not False,
        created_at=tx.now,
        traversal=str(uuid4()),
        phase=Phase.APPLY,
    )
    stacks.add(tx, stack, prepared.source)
    transition = Transition(tx, engine, stack, created=True)
    advance(transition, phases.begin_create(transition, prepared))
    phases.close(transition)
    return transition.stack


def update(tx: Tx, engine: Engine, stack_id: str, prepared: Prepared, options: Options) -> Stack:
    """A running operation is superseded. Raises NotSupported for a stack that is going or suspended."""
    stack = stacks.get(tx, stack_id, hold=True)
    if stack.action in (Action.DELETE, Action.SUSPEND):
        raise NotSupported(f"Updating a stack when it is in {stack.action}_{stack.status} is not supported.")
    transition = Transition(tx, engine, stack)
    transition.parameters.check_update(prepared.parameters)
    changes: dict[str, Any] = {"updated_at": tx.now}
    if options.timeout_mins is not None:
        changes["timeout_mins"] = options.timeout_mins
    if options.disable_rollback is not None:
        changes["disable_rollback"] = options.disable_rollback
    if options.tags is not None:
        changes["tags"] = tuple(options.tags)
    advance(transition, phases.begin_apply(transition, Action.UPDATE, prepared, **changes))
    phases.close(transition)
    return transition.stack


def delete(tx: Tx, engine: Engine, stack_id: str) -> Stack:
    """Whatever is under way is given up. A stack that is being deleted goes on with that."""
    stack = stacks.get(tx, stack_id, hold=True)
    if stack.action is Action.DELETE and stack.status is not Status.FAILED:
        return stack
    transition = Transition(tx, engine, stack)
    advance(transition, phases.begin_delete(transition))
    phases.close(transition)
    return transition.stack
