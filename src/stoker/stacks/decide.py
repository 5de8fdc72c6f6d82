"""What an apply step has to do with a resource. Pure: values in, a word out."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from stoker.hot import Definition
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.resources.base import ResourceType

#: Parts of a definition besides its properties whose change makes an update.
_PARTS = ("metadata", "update_policy")


class Deed(Enum):
    CREATE = auto()
    #: Nothing changed and nothing is wrong.
    KEEP = auto()
    #: Nothing changed and it is under way: wait for it.
    JOIN = auto()
    UPDATE = auto()
    #: It failed and its type can try again in place.
    RETRY = auto()
    REPLACE = auto()


def decide(
    resource: Resource | None,
    kind: ResourceType,
    definition: Definition,
    properties: Mapping[str, Any],
    *,
    stale: bool = False,
) -> Deed:
    """``stale``: what it was made from besides its properties has changed."""
    if resource is None or resource.action is Action.INIT:
        return Deed.CREATE
    if resource.type != definition.type or resource.action is Action.DELETE:
        return Deed.REPLACE
    changed = {name for name, value in properties.items() if resource.properties.get(name) != value}
    if kind.properties is not None and any(not kind.properties[name].update_allowed for name in changed):
        return Deed.REPLACE
    if resource.status is Status.FAILED:
        return Deed.RETRY if kind.retries and resource.action is not Action.CHECK else Deed.REPLACE
    if stale or changed or _other_parts(resource.definition) != _other_parts(definition.to_json()):
        return Deed.UPDATE
    return Deed.JOIN if resource.status is Status.IN_PROGRESS else Deed.KEEP


def _other_parts(definition: Mapping[str, Any]) -> list[Any]:
    return [definition.get(part) or {} for part in _PARTS]
