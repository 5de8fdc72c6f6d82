"""Groups whose members are selected by labels: their current members, and when to select them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from stoker.hot import UNKNOWN, weigh
from stoker.model import labels
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.server import Server
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.rollout import is_of_health
from stoker.store import selectors, servers
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that updates a group's members after labels changed; its arguments: ``resource_id``.
REFRESH = "group.refresh"
#: Key of the group's data: server ids by member name.
_KEY = "servers"
#: Limit of the server's part of a member's name, which may have 255 characters in total.
_LONGEST = 200


def validate(properties: Properties) -> None:
    """Require exactly one of ``servers`` and ``labels``. Raises StackValidationFailed."""
    values = [properties[name] for name in ("servers", "labels") if properties[name] is not None]
    if not values or (len(values) == 2 and UNKNOWN not in values):
        which = "both are given" if values else "neither is given"
        raise StackValidationFailed(f"exactly one of servers and labels says which servers it is of, and {which}")
    wanted = properties["labels"]
    if wanted is None or wanted is UNKNOWN or weigh(wanted)[1]:
        return
    if not wanted:
        raise StackValidationFailed("labels: at least one is needed")
    try:
        labels.check_labels(wanted)
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


def members(resource: Resource, properties: Properties) -> Mapping[str, str]:
    """Return server ids by member name."""
    if properties.get("labels"):
        chosen: Mapping[str, str] = resource.data.get(_KEY) or {}
        return chosen
    return properties.get("servers") or {}


def choose(context: Context, resource: Resource, properties: Properties) -> Resource:
    """Return the resource with its current servers, and register the group for changes of labels in the project."""
    if not properties["labels"]:
        if _KEY in resource.data:
            forget(context, resource)
        return replace(resource, data={name: value for name, value in resource.data.items() if name != _KEY})
    selectors.lock(context.tx, context.project_id)
    selectors.put(context.tx, resource.id, context.project_id, properties["labels"])
    selected = servers.find_by_labels(context.tx, context.project_id, properties["labels"])
    return replace(resource, data={**resource.data, _KEY: _named(selected, resource.data.get(_KEY) or {})})


def reselect(context: Context, resource: Resource) -> None:
    """Defer a refresh if the labels' servers changed while the group was busy."""
    if is_outdated(context, resource):
        request_refresh(context.tx, context.env.work, resource.id)


def is_outdated(context: Context, resource: Resource) -> bool:
    """Return whether other servers than the group's members have its labels."""
    wanted = resource.properties.get("labels")
    if not wanted:
        return False
    selected = servers.find_by_labels(context.tx, context.project_id, wanted)
    return {server.id for server in selected} != set(members(resource, resource.properties).values())


def forget(context: Context, resource: Resource) -> None:
    """End the registration for changes of labels."""
    selectors.remove(context.tx, resource.id)


def request_refresh(tx: Tx, work: Work, resource_id: str) -> None:
    """Defer a refresh of the group, unless a refresh is pending already."""
    work.defer_once(tx, REFRESH, resource_id, {"resource_id": resource_id})


def stack_ended(tx: Tx, work: Work, stack_id: str) -> None:
    """Defer the refreshes that waited for this stack's operation to end."""
    for resource_id in selectors.release(tx, stack_id):
        request_refresh(tx, work, resource_id)


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
