"""
Groups over labels and facts: a server joins a group when the group's selector selects it, and leaves otherwise.

Only the group's resource is updated, without an operation of the stack; all other resources stay unchanged. If the
stack is busy, the group waits for the end of the stack's operation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from stoker.model.errors import ActionInProgress, StokerError
from stoker.model.stack import Resource, Stack
from stoker.model.status import Action, Status
from stoker.model.wake import Owner, Settled
from stoker.policy import holds
from stoker.resources import label_groups
from stoker.resources.base import Replace, ResourceFailure
from stoker.stacks.engine import Engine
from stoker.stacks.engine.actions import fail, finish_action
from stoker.stacks.engine.progress import commit
from stoker.stacks.engine.session import StackSession
from stoker.store import resources, selectors, stacks
from stoker.store.tx import ServerChange, Tx
from stoker.work import Work

#: Kind of the job that fails a refresh of a group when its deadline passes.
REFRESH_DEADLINE = "group.deadline"
_REASON = "servers came or went by their labels or facts"


def servers_changed(tx: Tx, work: Work, changed: Sequence[ServerChange]) -> None:
    """
    Refresh all groups whose members may change because labels or facts of servers have changed.

    Each change has the project, the server before and the server after; None means that the server does not exist.
    """
    # Sorted, so that two transactions that change the same projects take the locks in the same order.
    for project_id in sorted({change[0] for change in changed}):
        selectors.lock(tx, project_id)
        changes = [(before, after) for id, before, after in changed if id == project_id]
        for resource_id, selector in sorted(selectors.of_project(tx, project_id), key=itemgetter(0)):
            if any(selector.matches(before) != selector.matches(after) for before, after in changes):
                label_groups.request_refresh(tx, work, resource_id)


def refresh_members(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: update a group to the servers that have its labels."""
    id = args["resource_id"]
    stack, resource = _locked(tx, id)
    if stack is None or resource is None or not resource.current:
        selectors.remove(tx, id)
        return
    busy = _busy(tx, stack)
    if busy is not None:
        selectors.wait(tx, id, busy)
        return
    session = StackSession(tx, engine, stack)
    # A group in progress refreshes itself at its end. A failed group is retried only by the next update.
    if resource.status is Status.COMPLETE and label_groups.is_outdated(session.context, resource):
        _update(session, resource)
        commit(session)


def time_out(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: fail a refresh whose deadline has passed, unless its runs wait for a maintenance window."""
    stack, resource = _locked(tx, args["resource_id"])
    if stack is None or resource is None or resource.status is not Status.IN_PROGRESS:
        return
    if resource.data.get("round") == args["round"] and stack.status is not Status.IN_PROGRESS:
        opening = holds.first_opening(tx, stack.root_id)
        if opening is not None:
            at = opening + timedelta(seconds=engine.limits.action_timeout)
            engine.env.work.defer(tx, REFRESH_DEADLINE, resource.id, args, at=at)
            return
        session = StackSession(tx, engine, stack)
        session.type_of(resource).cancel(session.context, resource)
        tx.wake(Owner.resource(resource.id), Settled("Timed out"))


def refuse_refresh(tx: Tx, stack: Stack) -> None:
    """
    Raise ActionInProgress while a group in the stack is changing its members.

    The stack itself may have no operation in progress at that time.
    """
    if stack.parent_id:
        return  # the check was made for the root of the tree
    for resource_id, _ in selectors.of_project(tx, stack.project_id):
        group = resources.find(tx, resource_id)
        if group is None or group.status is not Status.IN_PROGRESS:
            continue
        if stacks.get(tx, group.stack_id).root_id == stack.id:
            raise ActionInProgress(f"Group {group.name} of stack {stack.name} is changing its members: wait for that.")


def _locked(tx: Tx, resource_id: str) -> tuple[Stack | None, Resource | None]:
    """Lock the stack of a resource. Return the stack and the resource as read after the lock."""
    unlocked = resources.find(tx, resource_id)
    stack = stacks.find(tx, unlocked.stack_id, for_update=True) if unlocked else None
    return stack, resources.find(tx, resource_id)


def _busy(tx: Tx, stack: Stack) -> str | None:
    """Return the id of the stack, among this one and its ancestors, whose operation the group has to wait for."""
    above: Stack | None = stack
    while above is not None:
        if above.status is Status.IN_PROGRESS or above.action is Action.SUSPEND:
            return above.id
        above = stacks.find(tx, above.parent_id) if above.parent_id else None
    return None


def _update(session: StackSession, resource: Resource) -> None:
    began = replace(
        resource, action=Action.UPDATE, status=Status.IN_PROGRESS, reason=_REASON, updated_at=session.tx.now
    )
    session.events.record(session.stack, began)
    try:
        outcome = session.type_of(resource).update(session.context, began, resource.properties)
    except Replace:
        fail(session, began, ResourceFailure("the nested stack is gone"), stack_too=False)
    except (ResourceFailure, StokerError) as error:
        fail(session, began, error, stack_too=False)
    else:
        if finish_action(session, began, outcome, planned=False):
            return
        # A refresh is not an operation of the stack, so the stack's deadline does not apply.
        engine, tx = session.engine, session.tx
        args = {"resource_id": resource.id, "round": (outcome.data or {}).get("round")}
        at = tx.now + timedelta(seconds=engine.limits.action_timeout)
        engine.env.work.defer_once(tx, REFRESH_DEADLINE, resource.id, args, at=at)
