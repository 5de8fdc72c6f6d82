"""Groups whose members a selector selects by labels and facts: their current members, and when to select them again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN, weigh
from stoker.model import labels
from stoker.model import selectors as model
from stoker.model.errors import Invalid, StackValidationFailed
from stoker.model.selectors import Selector
from stoker.model.server import Server
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.rollout import is_of_health
from stoker.store import selectors, server_lists, servers
from stoker.store.tx import Tx
from stoker.work import Work

#: Kind of the job that updates a group's members after labels or facts changed; its arguments: ``resource_id``.
REFRESH = "group.refresh"
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
        if wanted is not None and not (wanted is UNKNOWN or weigh(wanted)[1]):
            if not wanted:
                raise StackValidationFailed("labels: at least one is needed")
            labels.check_labels(wanted)
        if isinstance(text, str):
            model.parse(text)
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


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
            forget(context, resource)
        return replace(resource, data={name: value for name, value in resource.data.items() if name != _KEY})
    selectors.lock(context.tx, context.project_id)
    selectors.put(context.tx, resource.id, context.project_id, selector)
    selected = server_lists.find_by_selector(context.tx, context.project_id, selector)
    return replace(resource, data={**resource.data, _KEY: _named(selected, resource.data.get(_KEY) or {})})


def foresee(context: Context, resource: Resource | None, properties: Properties) -> Mapping[str, str]:
    """Return the server ids by member name that a group would have with these properties."""
    selector = selector_of(properties)
    if selector is None:
        named = properties.get("servers") or {}
        return {name: servers.resolve_id(context.tx, context.project_id, str(id)) for name, id in named.items()}
    selected = server_lists.find_by_selector(context.tx, context.project_id, selector)
    return _named(selected, (resource.data.get(_KEY) if resource else None) or {})


def reselect(context: Context, resource: Resource) -> None:
    """Defer a refresh if the selected servers changed while the group was busy."""
    if is_outdated(context, resource):
        request_refresh(context.tx, context.env.work, resource.id)


def is_outdated(context: Context, resource: Resource) -> bool:
    """Return whether the group's selector selects other servers than its members."""
    selector = selector_of(resource.properties)
    if selector is None:
        return False
    selected = server_lists.find_by_selector(context.tx, context.project_id, selector)
    return {server.id for server in selected} != set(members(resource, resource.properties).values())


def forget(context: Context, resource: Resource) -> None:
    """End the registration for changes of servers."""
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
