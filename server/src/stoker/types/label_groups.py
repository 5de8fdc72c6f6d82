"""
Groups whose members a selector selects by labels and facts: a server joins when the selector selects it, and leaves
otherwise.

Only the group's resource is updated, without an operation of the stack; all other resources stay unchanged. If the
stack is busy, the group waits for the end of the stack's operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN, has_unknown
from stoker.model import selectors as model
from stoker.model.deployment import Owner, Settled
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.selectors import Selector
from stoker.model.server import Server, check_labels
from stoker.model.stack import Action, Resource, Stack, Status
from stoker.policy import authorizer
from stoker.resources.base import Context, Properties, Replace, ResourceFailure
from stoker.stacks.engine import REFRESH, Engine
from stoker.stacks.engine.actions import begin_action, fail, perform
from stoker.stacks.engine.progress import commit, lock_resource
from stoker.stacks.engine.session import StackSession
from stoker.store import server_lists, servers, stacks
from stoker.store.tx import ServerChange, Tx
from stoker.types.rollout import is_of_health
from stoker.work import Work

#: Kind of the job that fails a refresh of a group when its deadline passes.
REFRESH_DEADLINE = "group.deadline"
_REASON = "servers came or went by their labels or facts"
#: Key of the group's data: server ids by member name.
_KEY = "servers"
#: Limit of the server's part of a member's name, which may have 255 characters in total.
_LONGEST = 200


def validate(properties: Properties) -> None:
    """Require either ``servers``, or ``labels`` or ``selector``, or both of these. Raises StackValidationFailed."""
    by_name, by_selector = properties["servers"], [properties[name] for name in ("labels", "selector")]
    selecting = [value for value in by_selector if value is not None]
    is_unclear = by_name is UNKNOWN or UNKNOWN in selecting
    if (by_name is None) is (not selecting) and not (selecting and is_unclear):
        which = "both are given" if selecting else "neither is given"
        raise StackValidationFailed(f"exactly one of servers and labels says which servers it is of, and {which}")
    wanted, text = by_selector
    try:
        _check_wanted(wanted)
        if isinstance(text, str):
            model.parse(text)
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


def _check_wanted(labels: Any) -> None:
    """Check the labels to select by, if they are given and known. Raises Invalid or StackValidationFailed."""
    if labels is None or labels is UNKNOWN or has_unknown(labels):
        return
    if not labels:
        raise StackValidationFailed("labels: at least one is needed")
    check_labels(labels)


def selector_of(properties: Properties) -> Selector | None:
    """Return the selector of a group's properties, or None if they name the servers."""
    wanted, text = properties.get("labels"), properties.get("selector")
    return model.select(wanted or None, text)


def members(resource: Resource, properties: Properties) -> Mapping[str, str]:
    """Return server ids by member name."""
    if selector_of(properties) is not None:
        chosen: Mapping[str, str] = resource.data.get(_KEY) or {}
        return chosen
    return properties.get("servers") or {}


def choose(context: Context, resource: Resource, properties: Properties) -> Resource:
    """Return the resource with its current servers, and register the group for changes of servers in the project."""
    selector = selector_of(properties)
    if selector is None:
        if _KEY in resource.data:
            server_lists.remove_selector(context.tx, resource.id)
        return replace(resource, data={name: value for name, value in resource.data.items() if name != _KEY})
    server_lists.lock_labels(context.tx, context.project_id)
    server_lists.put_selector(context.tx, resource.id, context.project_id, selector.labels, selector.text)
    return replace(resource, data={**resource.data, _KEY: foresee(context, resource, properties)})


def foresee(context: Context, resource: Resource | None, properties: Properties) -> Mapping[str, str]:
    """Return the server ids by member name that a group would have with these properties."""
    selector = selector_of(properties)
    if selector is None:
        named = properties.get("servers") or {}
        return {name: servers.resolve_id(context.tx, context.project_id, str(id)) for name, id in named.items()}
    selected = server_lists.find_by_selector(context.tx, context.project_id, selector)
    return _named(selected, (resource.data.get(_KEY) if resource else None) or {})


def is_outdated(context: Context, resource: Resource) -> bool:
    """Return whether the group's selector selects other servers than its members."""
    selector = selector_of(resource.properties)
    if selector is None:
        return False
    selected = server_lists.find_by_selector(context.tx, context.project_id, selector)
    return {server.id for server in selected} != set(members(resource, resource.properties).values())


def request_refresh(tx: Tx, work: Work, resource_id: str) -> None:
    """Defer a refresh of the group, unless a refresh is pending already."""
    work.defer_once(tx, REFRESH, resource_id, {"resource_id": resource_id})


def servers_changed(tx: Tx, changed: Sequence[ServerChange], work: Work) -> None:
    """
    Refresh all groups whose members may change because labels or facts of servers have changed.

    Each change has the project, the server before and the server after; None means that the server does not exist.
    """
    # Sorted, so that two transactions that change the same projects take the locks in the same order.
    for project_id in sorted({change[0] for change in changed}):
        server_lists.lock_labels(tx, project_id)
        changes = [(before, after) for id, before, after in changed if id == project_id]
        for resource_id, selector in sorted(server_lists.selectors_of(tx, project_id), key=itemgetter(0)):
            if any(selector.matches(before) != selector.matches(after) for before, after in changes):
                request_refresh(tx, work, resource_id)


def refresh_members(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: update a group to the servers that have its labels."""
    id = args["resource_id"]
    locked = lock_resource(tx, engine, id)
    if locked is None or not locked[1].current:
        server_lists.remove_selector(tx, id)
        return
    session, resource = locked
    busy = _busy(tx, session.stack)
    if busy is not None:
        server_lists.let_wait(tx, busy, id)
        return
    # A group in progress refreshes itself at its end. A failed group is retried only by the next update.
    if resource.status is Status.COMPLETE and is_outdated(session.context, resource):
        _update(session, resource)
        commit(session)


def time_out_group(tx: Tx, engine: Engine, args: Mapping[str, Any]) -> None:
    """Job: fail a refresh whose deadline has passed, unless its runs wait for a maintenance window."""
    locked = lock_resource(tx, engine, args["resource_id"])
    if locked is None or locked[1].status is not Status.IN_PROGRESS:
        return
    session, resource = locked
    if resource.data.get("round") == args["round"] and session.stack.status is not Status.IN_PROGRESS:
        opening = authorizer.first_opening(tx, session.stack.root_id)
        if opening is not None:
            at = opening + timedelta(seconds=engine.limits.action_timeout)
            engine.env.work.defer(tx, REFRESH_DEADLINE, resource.id, args, at=at)
            return
        session.type_of(resource).cancel(session.context, resource)
        tx.wake(Owner.resource(resource.id), Settled("Timed out"))


def _busy(tx: Tx, stack: Stack) -> str | None:
    """Return the id of the stack, among this one and its ancestors, whose operation the group has to wait for."""
    above: Stack | None = stack
    while above is not None:
        if above.status is Status.IN_PROGRESS or above.action is Action.SUSPEND:
            return above.id
        above = stacks.find(tx, above.parent_id) if above.parent_id else None
    return None


def _update(session: StackSession, resource: Resource) -> None:
    engine, tx = session.engine, session.tx
    began = begin_action(session, replace(resource, updated_at=tx.now), Action.UPDATE, _REASON)
    update = session.type_of(resource).update
    try:
        perform(session, began, update, began, resource.properties, planned=False)
    except Replace:
        fail(session, began, ResourceFailure("the nested stack is gone"), stack_too=False)
    group = session.resources.find_by_id(resource.id)
    if group is not None and group.status is Status.IN_PROGRESS:
        # A refresh is not an operation of the stack, so the stack's deadline does not apply.
        args = {"resource_id": group.id, "round": group.data.get("round")}
        at = tx.now + timedelta(seconds=engine.limits.action_timeout)
        engine.env.work.defer_once(tx, REFRESH_DEADLINE, group.id, args, at=at)


def _named(selected: Iterable[Server], before: Mapping[str, Any]) -> dict[str, str]:
    """Name the servers. Existing names do not change, because a name identifies a deployment."""
    selected = list(selected)
    old_names = {id: name for name, id in before.items()}
    taken = {old_names[server.id] for server in selected if server.id in old_names}
    names: dict[str, str] = {}
    for server in selected:
        name = old_names.get(server.id) or _free(server, taken)
        taken.add(name)
        names[name] = server.id
    return names


def _free(server: Server, taken: Iterable[str]) -> str:
    name = server.name.replace("/", "-")[:_LONGEST]
    return name if name not in taken and not is_of_health(name) else f"{name}-{server.id[:8]}"
