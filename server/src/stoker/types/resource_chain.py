"""OS::Heat::ResourceChain: resources of several types with the same properties, created one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stoker.hot import UNKNOWN, select
from stoker.model.stack import Resource
from stoker.resources.base import Context, Properties
from stoker.resources.properties import Property
from stoker.types import nested_base, nested_stacks, rollout
from stoker.types.group_base import GroupType
from stoker.types.rollout import BATCHES, Members


class ResourceChain(GroupType):
    name = "OS::Heat::ResourceChain"
    description = "Resources of several types with the same properties, in a row."
    properties = {
        "resources": Property(
            kind="list",
            each=Property(kind="string"),
            required=True,
            update_allowed=True,
            description="The types, in their order.",
        ),
        "concurrent": Property(kind="boolean", default=False, description="All at once instead of one by one."),
        "resource_properties": Property(kind="map", description="Properties for each of them."),
    }
    policies = rollout.schema(BATCHES, BATCHES)
    has_foreseeable_members = True

    def definitions(self, resource: Resource, properties: Properties) -> Members:
        members: dict[str, dict[str, Any]] = {}
        for index, type_name in enumerate(properties["resources"]):
            member: dict[str, Any] = {"type": type_name, "properties": dict(properties["resource_properties"] or {})}
            if index and not properties["concurrent"]:
                member["depends_on"] = [str(index - 1)]
            members[str(index)] = member
        return members

    def attribute_at(self, context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
        look = nested_stacks.view(context, resource)
        if look is None:
            return None
        members = sorted(look.names, key=int)
        if name == "refs":
            return select([look.reference(member) for member in members], path)
        if name == "attributes":
            return nested_base.attribute_of_each(look, members, path)
        if name.startswith("resource."):
            return nested_base.inside(context, resource, name, path)
        return [look.attribute(member, name, path) for member in members]

    def members(self, properties: Properties) -> Iterable[tuple[str, str, Properties]]:
        types, values = properties["resources"], properties["resource_properties"]
        if types is UNKNOWN:
            return ()
        plain = {} if values is UNKNOWN or values is None else values
        return tuple((str(index), name, plain) for index, name in enumerate(types) if name is not UNKNOWN)
