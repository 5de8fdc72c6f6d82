"""
Adoption: a stack takes over what another stack abandoned.

A resource has no data of the adopted object until its type has agreed: the client may name objects of other projects,
and a resource's data is shown and deleted with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from stoker.model.errors import Invalid
from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.stacks.templates.prepare import ResolvedStack
from stoker.store.tx import Tx


def read_adoption_data(data: Any) -> Mapping[str, Any]:
    """Return the resources of abandon data. Raises Invalid if the data is malformed."""
    resources = data.get("resources") if isinstance(data, Mapping) else None
    if not isinstance(resources, Mapping) or not all(isinstance(resource, Mapping) for resource in resources.values()):
        raise Invalid('adopt_stack_data must be what abandon gave: a map with "template" and "resources"')
    for name, resource in resources.items():
        if not isinstance(resource.get("resource_id"), str | None) or not isinstance(
            resource.get("resource_data") or {}, Mapping
        ):
            raise Invalid(
                f"adopt_stack_data: resources.{name} needs a resource_id that is text, and resource_data a map"
            )
        if not isinstance(resource.get("metadata") or {}, Mapping):
            raise Invalid(f"adopt_stack_data: resources.{name}.metadata must be a map")
    return resources


#: Key in a placeholder's data: the object to take over.
_TAKES = "takes"


def placeholders(tx: Tx, stack_id: str, resolved: ResolvedStack, adopted: Mapping[str, Any]) -> list[Resource]:
    """Return placeholder rows for resources of a new stack that take over existing objects."""
    new = []
    for name, abandoned in adopted.items():
        definition = resolved.definitions.get(name)
        if definition is None or not abandoned.get("resource_id"):
            continue
        # Only "resources" was checked, so a client's own "adopt" is dropped.
        data = {key: value for key, value in (abandoned.get("resource_data") or {}).items() if key != "adopt"}
        metadata = abandoned.get("metadata") or {}
        if "resources" in abandoned:
            data["adopt"] = read_adoption_data(abandoned)
        new.append(
            Resource(
                id=str(uuid4()),
                stack_id=stack_id,
                name=name,
                type=definition["type"],
                action=Action.INIT,
                status=Status.COMPLETE,
                data={_TAKES: {"physical_id": abandoned["resource_id"], "data": data, "metadata": metadata}},
                created_at=tx.now,
            )
        )
    return new


def is_unfinished(resource: Resource, *, needs_cloud: bool) -> bool:
    """
    Return whether the next action on the resource is its adoption, because it is a placeholder or the adoption failed.

    ``needs_cloud``: whether the object belongs to a cloud. For other types, a later update creates another object.
    """
    if resource.action is Action.ADOPT:
        return needs_cloud and resource.status is Status.FAILED
    return resource.action is Action.INIT and _TAKES in resource.data


def with_what_it_takes(resource: Resource, *, with_metadata: bool) -> Resource:
    """
    Return the resource with the data to take over, for its type to check. Store it only after the type has agreed.

    A resource whose type agreed before has the data already. ``with_metadata``: whether the resource takes the metadata
    over, which has the signals of a handle.
    """
    if _TAKES not in resource.data:
        return resource
    takes = resource.data[_TAKES]
    metadata = {**takes["metadata"], **resource.metadata} if with_metadata else resource.metadata
    return replace(resource, physical_id=takes["physical_id"], data=takes["data"], metadata=metadata)
