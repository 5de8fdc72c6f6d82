"""The end of a transaction on a stack: everything is written, and whoever waits for the stack is told."""

from __future__ import annotations

from stoker.model.stack import Phase, Resource
from stoker.model.status import Action, Status
from stoker.resources import selecting
from stoker.stacks import phases
from stoker.stacks.advance import wake
from stoker.stacks.engine import Engine
from stoker.stacks.transition import Transition
from stoker.store import resources, stacks
from stoker.store.tx import Tx


def close(transition: Transition, *, quiet: bool = False) -> None:
    """``quiet``: the resource that a nested stack is asks itself how it stands."""
    transition.save()
    phases.set_deadline(transition)
    stack = transition.stack
    logins = transition.engine.services.logins
    if logins is not None and stack.parent_id is None and stack.deleted_at and not transition.before.deleted_at:
        logins.stack_gone(transition.tx, stack)
    if transition.ended and stack.phase is Phase.IDLE and _outlived_its_beginning(transition):
        selecting.stack_ended(transition.tx, transition.engine.services.work, stack.id)
    if stack.parent_resource_id and stack.phase is Phase.IDLE and transition.ended and not quiet:
        wake_resource(transition.tx, transition.engine, stack.parent_resource_id)


def _outlived_its_beginning(transition: Transition) -> bool:
    """Nobody can have waited for what began in this transaction."""
    return not transition.created and (
        transition.before.status is Status.IN_PROGRESS or transition.before.action is Action.SUSPEND
    )


def wake_resource(tx: Tx, engine: Engine, resource_id: str, failure: str | None = None) -> None:
    """Somebody reported on a resource; ``failure`` says that it cannot succeed any more."""
    found = resources.find(tx, resource_id)
    if found is None:
        return
    stack = stacks.find(tx, found.stack_id, hold=True)
    resource: Resource | None = resources.find(tx, resource_id)
    if stack is None or resource is None:
        return
    transition = Transition(tx, engine, stack)
    wake(transition, resource, failure)
    close(transition)
