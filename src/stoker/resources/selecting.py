"""Members that are chosen by labels: who they are, and when they have to be looked for anew."""

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
from stoker.resources.rolling import is_of_health
from stoker.store import selectors, servers
from stoker.store.tx import Tx
from stoker.work import Work, defer_once

#: Kind of the job that has a group look who has its labels; its arguments: ``resource_id``.
REGROUP = "group.regroup"
#: Where a group's data has its servers: ids by members' names.
_KEY = "servers"
#: Of a resource's name, which may have 255 characters, this much is the server's.
_LONGEST = 200


def validate(properties: Properties) -> None:
    """Raises StackValidationFailed."""
    given = [properties[name] for name in ("servers", "labels") if properties[name] is not None]
    if not given or (len(given) == 2 and UNKNOWN not in given):
        which = "both are given" if given else "neither is given"
        raise StackValidationFailed(f"exactly one of servers and labels says which servers it is of, and {which}")
    said = properties["labels"]
    if said is None or said is UNKNOWN or weigh(said)[1]:
        return
    if not said:
        raise StackValidationFailed("labels: at least one is needed")
    try:
        labels.checked(said)
    except Invalid as error:
        raise StackValidationFailed(error.message) from None


def members(resource: Resource, properties: Properties) -> Mapping[str, str]:
    """Ids of servers by members' names."""
    if properties.get("labels"):
        found: Mapping[str, str] = resource.data.get(_KEY) or {}
        return found
    return properties.get("servers") or {}


def choose(context: Context, resource: Resource, properties: Properties) -> Resource:
    """The resource with the servers that have its labels now; it hears of those that come and go from here on."""
    if not properties["labels"]:
        if _KEY in resource.data:
            forget(context, resource)
        return replace(resource, data={name: value for name, value in resource.data.items() if name != _KEY})
    selectors.hold(context.tx, context.project_id)
    selectors.put(context.tx, resource.id, context.project_id, properties["labels"])
    found = servers.labelled(context.tx, context.project_id, properties["labels"])
    return replace(resource, data={**resource.data, _KEY: _named(found, resource.data.get(_KEY) or {})})


def look_again(context: Context, resource: Resource) -> None:
    """Who has the labels may be others by now, as nobody changed a group that was busy."""
    if is_outdated(context, resource):
        ask(context.tx, context.services.work, resource.id)


def is_outdated(context: Context, resource: Resource) -> bool:
    wanted = resource.properties.get("labels")
    if not wanted:
        return False
    found = servers.labelled(context.tx, context.project_id, wanted)
    return {each.id for each in found} != set(members(resource, resource.properties).values())


def forget(context: Context, resource: Resource) -> None:
    selectors.remove(context.tx, resource.id)


def ask(tx: Tx, work: Work, resource_id: str) -> None:
    """Once, however often it is asked for before it is done."""
    defer_once(work, tx, REGROUP, resource_id, {"resource_id": resource_id})


def stack_ended(tx: Tx, work: Work, stack_id: str) -> None:
    """Groups that waited for that are looked at now."""
    for resource_id in selectors.release(tx, stack_id):
        ask(tx, work, resource_id)


def _named(found: Iterable[Server], before: Mapping[str, Any]) -> dict[str, str]:
    """Who has a name keeps it, though it be renamed or another one of that name come: a name is a deployment."""
    found = list(found)
    known = {id: name for name, id in before.items()}
    taken = {known[each.id] for each in found if each.id in known}
    names: dict[str, str] = {}
    for each in found:
        name = known.get(each.id) or _free(each, taken)
        taken.add(name)
        names[name] = each.id
    return names


def _free(server: Server, taken: Iterable[str]) -> str:
    name = server.name.replace("/", "-")[:_LONGEST]
    return name if name not in taken and not is_of_health(name) else f"{name}-{server.id[:8]}"
