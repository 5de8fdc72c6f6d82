"""The steps that do something to resources which stay what they are: clean-up, suspend, resume, check, snapshot."""

from __future__ import annotations

from stoker.model.errors import StokerError
from stoker.model.stack import Resource
from stoker.model.status import Action
from stoker.resources.base import DONE, Context, Outcome, ResourceFailure
from stoker.stacks import breakpoints
from stoker.stacks.acting import begin_visit, fail, settle
from stoker.stacks.transition import Transition


def clean_step(transition: Transition, id: str, *, past_hook: bool = False) -> bool:
    resource = transition.resource_by_id(id)
    if resource is None:
        return True
    kept = resource.definition.get("deletion_policy") == "Retain" or resource.definition.get("external_id")
    if kept or resource.action is Action.INIT:
        transition.drop(resource)
        return True
    if not past_hook and breakpoints.pauses(transition, resource, "pre", Action.DELETE):
        transition.plan.start(id)
        return False
    began = begin_visit(transition, resource, Action.DELETE)
    try:
        outcome = transition.type_of(resource).delete(transition.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(transition, began, error)
        return False
    return settle(transition, began, outcome)


def visit_step(transition: Transition, id: str) -> bool:
    """What the stack's action means for this resource."""
    resource = transition.resource_by_id(id)
    if resource is None:
        return True
    action = transition.stack.action
    do = transition.type_of(resource).actions.get(action, _nothing)
    began = begin_visit(transition, resource, action)
    try:
        outcome = do(transition.context, began)
    except (ResourceFailure, StokerError) as error:
        fail(transition, began, error)
        return False
    return settle(transition, began, outcome)


def _nothing(_context: Context, resource: Resource) -> Outcome:
    """Nobody may take a resource for checked whose type has no check."""
    if resource.action is Action.CHECK:
        return Outcome(reason=f"CHECK not supported for {resource.type}")
    return DONE
