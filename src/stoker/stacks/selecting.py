"""
Groups over labels: a server that gets a group's labels joins it, one that loses them leaves it.

Their resource alone is changed, and shows it; no operation of the stack is needed for that, and whatever else the stack
has stays as it is. Where the stack is busy, the group waits for the end of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from stoker.deployments import windows
from stoker.model.errors import ActionInProgress, StokerError
from stoker.model.labels import match
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.resources import selecting
from stoker.resources.base import Replace, ResourceFailure
from stoker.stacks.acting import fail, settle
from stoker.stacks.closing import close, wake_resource
from stoker.stacks.engine import Engine
from stoker.stacks.transition import Transition
from stoker.store import resources, selectors, stacks
from stoker.store.tx import Relabelled, Tx
from stoker.work import defer_once

#: Kind of the job that ends a regrouping whose time is over.
REGROUP_DEADLINE = "group.deadline"
_REASON = "servers came or went by their labels"


def labels_changed(tx: Tx, engine: Engine, changed: Sequence[Relabelled]) -> None:
    """Servers have other labels now; none: it is not there. Groups that one belongs to or did are looked at anew."""
    # In order, so that two transactions that change the same projects' never wait for each other in a circle.
    for project_id in sorted({each[0] for each in changed}):
        selectors.hold(tx, project_id)
        labels = [(before, after) for id, before, after in changed if id == project_id]
        for resource_id, wanted in sorted(selectors.of_project(tx, project_id)):
            if any(match(before, wanted) != match(after, wanted) for before, after in labels):
                selecting.ask(tx, engine.services.work, resource_id)


def regroup(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """The job: bring a group to the servers that have its labels."""
    id = args["resource_id"]
    stack, resource = _held(tx, id)
    if stack is None or resource is None or not resource.current:
        selectors.remove(tx, id)
        return
    busy = _busy(tx, stack)
    if busy is not None:
        selectors.wait(tx, id, busy)
        return
    transition = Transition(tx, engine, stack)
    # One that is under way looks itself when it is done. One that failed is tried again by the next update alone.
    if resource.status is Status.COMPLETE and selecting.is_outdated(transition.context, resource):
        _update(transition, resource)
        close(transition)


def time_out(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """What a regrouping still waited for is given up."""
    stack, resource = _held(tx, args["resource_id"])
    if stack is None or resource is None or resource.status is not Status.IN_PROGRESS:
        return
    if resource.data.get("round") == args["round"] and stack.status is not Status.IN_PROGRESS:
        opening = windows.first_opening(tx, stack.root_id)
        if opening is not None:
            at = opening + timedelta(seconds=engine.limits.action_timeout)
            engine.services.work.defer(tx, REGROUP_DEADLINE, resource.id, args, at=at)
            return
        transition = Transition(tx, engine, stack)
        transition.type_of(resource).cancel(transition.context, resource)
        wake_resource(tx, engine, resource.id, "Timed out")


def refuse_regrouping(tx: Tx, stack: Stack) -> None:
    """
    Raises ActionInProgress while a group in the stack takes servers up: the stack is at rest, but what is in it is not.
    """
    if stack.parent_id:
        return  # whoever does this to the whole tree was asked
    for resource_id, _ in selectors.of_project(tx, stack.project_id):
        group = resources.find(tx, resource_id)
        if group is None or group.status is not Status.IN_PROGRESS:
            continue
        if stacks.get(tx, group.stack_id).root_id == stack.id:
            raise ActionInProgress(f"Group {group.name} of stack {stack.name} is changing its members: wait for that.")


def _held(tx: Tx, resource_id: str) -> tuple[Stack | None, Resource | None]:
    """A resource as it is once its stack is held."""
    known = resources.find(tx, resource_id)
    stack = stacks.find(tx, known.stack_id, hold=True) if known else None
    return stack, resources.find(tx, resource_id)


def _busy(tx: Tx, stack: Stack) -> str | None:
    """Which stack has to do something else first, of this one and those that it is in."""
    above: Stack | None = stack
    while above is not None:
        if above.status is Status.IN_PROGRESS or above.action is Action.SUSPEND:
            return above.id
        above = stacks.find(tx, above.parent_id) if above.parent_id else None
    return None


def _update(transition: Transition, resource: Resource) -> None:
    began = replace(
        resource, action=Action.UPDATE, status=Status.IN_PROGRESS, reason=_REASON, updated_at=transition.tx.now
    )
    transition.event(began)
    try:
        outcome = transition.type_of(resource).update(transition.context, began, resource.properties)
    except Replace:
        fail(transition, began, ResourceFailure("the nested stack is gone"), stack_too=False)
    except (ResourceFailure, StokerError) as error:
        fail(transition, began, error, stack_too=False)
    else:
        if settle(transition, began, outcome, planned=False):
            return
        # No operation of the stack, no deadline of that.
        engine, tx = transition.engine, transition.tx
        args = {"resource_id": resource.id, "round": (outcome.data or {}).get("round")}
        at = tx.now + timedelta(seconds=engine.limits.action_timeout)
        defer_once(engine.services.work, tx, REGROUP_DEADLINE, resource.id, args, at=at)
