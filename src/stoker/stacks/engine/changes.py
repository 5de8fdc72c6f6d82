"""Decides what an apply step does with a resource. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import ResourceType

#: Parts of a definition, besides the properties, whose change requires an update.
_PARTS = ("metadata", "update_policy")


class ResourceChange(Enum):
    """What an apply step does with a resource."""

    CREATE = auto()
    #: No change, and the resource is complete.
    NOOP = auto()
    #: No change, and the resource is in progress: wait for it.
    AWAIT = auto()
    UPDATE = auto()
    #: The resource failed, and its type can retry in place.
    RETRY = auto()
    REPLACE = auto()
    #: A rollback has returned to the resource that another one had replaced: the resource takes back what it gave up.
    RESTORE = auto()


def decide(
    resource: Resource | None,
    kind: ResourceType,
    definition: Definition,
    properties: Mapping[str, Any],
    *,
    stale: bool = False,
) -> ResourceChange:
    """
    Return the change that brings ``resource`` to ``definition``.

    ``properties`` are the evaluated new properties. ``stale``: other inputs of the resource have changed.
    """
    if resource is None or resource.action is Action.INIT:
        return ResourceChange.CREATE
    if resource.type != definition.type or resource.action is Action.DELETE:
        return ResourceChange.REPLACE
    changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
    if kind.properties is not None and any(not kind.properties[name].update_allowed for name in changed):
        return ResourceChange.REPLACE
    if resource.status is Status.FAILED:
        return ResourceChange.RETRY if kind.retries and resource.action is not Action.CHECK else ResourceChange.REPLACE
    if stale or changed or _other_parts(resource.definition) != _other_parts(definition.to_json()):
        return ResourceChange.UPDATE
    return ResourceChange.AWAIT if resource.status is Status.IN_PROGRESS else ResourceChange.NOOP


def _other_parts(definition: Mapping[str, Any]) -> list[Any]:
    return [definition.get(part) or {} for part in _PARTS]
