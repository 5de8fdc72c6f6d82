"""Steps that keep a resource's definition: clean-up, suspend, resume, check, snapshot."""

from __future__ import annotations

from stoker.model.errors import StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, Context, Outcome, ResourceFailure
from stoker.stacks.engine import breakpoints, ownership
from stoker.stacks.engine.resource_actions import begin_action, fail, finish_action
from stoker.stacks.engine.session import StackSession


def cleanup_step(session: StackSession, id: str, *, past_hook: bool = False) -> bool:
    """
    Delete or retain a resource. Return True if the step is done.

    ``past_hook``: a breakpoint before the step has been cleared.
    """
    resource = session.resources.find_by_id(id)
    if resource is None:
        return True
    external = resource.definition.get("external_id")
    retained = resource.definition.get("deletion_policy") == "Retain"
    if external or retained or resource.action is Action.INIT:
        if external:
            session.type_of(resource).stop_referring(session.context, resource)
        elif resource.action is not Action.INIT:
            ownership.retain(session, resource)
        session.resources.drop(resource)
        return True
    if not past_hook and breakpoints.pauses(session, resource, "pre", Action.DELETE):
        session.plan.start(id)
        return False
    began = begin_action(session, resource, Action.DELETE)
    try:
        outcome = session.type_of(resource).delete(session.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(session, began, error)
        return False
    return finish_action(session, began, outcome)


def action_step(session: StackSession, id: str) -> bool:
    """Run the stack's action on a resource. Return True if the step is done."""
    resource = session.resources.find_by_id(id)
    if resource is None:
        return True
    action = session.stack.action
    do = session.type_of(resource).actions.get(action, _nothing)
    began = begin_action(session, resource, action)
    try:
        outcome = do(session.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(session, began, error)
        return False
    return finish_action(session, began, outcome)


def _nothing(_context: Context, resource: Resource) -> Outcome:
    """Do nothing for a type without this action. For CHECK, the reason states that the type has no check."""
    if resource.action is Action.CHECK:
        return Outcome(reason=f"CHECK not supported for {resource.type}")
    return DONE
