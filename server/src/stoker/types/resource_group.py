"""OS::Heat::ResourceGroup: resources with the same definition; OS::Heat::ResourceChain: resources of several types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from stoker.hot import UNKNOWN, has_unknown, select
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure
from stoker.resources.properties import Property
from stoker.resources.roles import Members
from stoker.stacks.engine.session import LiveScope
from stoker.types import nested_stacks, rollout
from stoker.types.group_base import GroupType
from stoker.types.rollout import BATCHES, MIN_IN_SERVICE

#: Limit of a group's members, so that one request cannot exhaust memory or time.
MOST = 10_000

PROPERTIES: Mapping[str, Property] = {
    "count": Property(
        kind="integer", default=1, minimum=0, maximum=MOST, update_allowed=True, description="How many there are."
    ),
    "index_var": Property(kind="string", default="%index%", description="Stands for a member's name."),
    "resource_def": Property(
        kind="map",
        required=True,
        update_allowed=True,
        schema={
            "type": Property(kind="string", required=True),
            "properties": Property(kind="map"),
            "metadata": Property(kind="map"),
        },
        description="What each of them is.",
    ),
    "removal_policies": Property(
        kind="list",
        default=[],
        update_allowed=True,
        each=Property(kind="map", schema={"resource_list": Property(kind="list", required=True)}),
        description="Names or references of members to remove first; their names are never used again.",
    ),
    "removal_policies_mode": Property(
        kind="string",
        default="append",
        allowed=("append", "update"),
        update_allowed=True,
        description="Whether names that were removed earlier stay unused.",
    ),
}


def _names(count: int, removed: Iterable[str]) -> list[str]:
    unused, index = set(removed), 0
    names: list[str] = []
    while len(names) < count:
        if str(index) not in unused:
            names.append(str(index))
        index += 1
    return names


def _define(names: Iterable[str], properties: Properties) -> Members:
    wanted = {key: part for key, part in properties["resource_def"].items() if part is not None}
    values, word = wanted.get("properties") or {}, str(properties["index_var"])
    return {name: {**wanted, "properties": _fill(values, word, name)} for name in names}


def _fill(value: Any, word: str, name: str) -> Any:
    if isinstance(value, str):
        return value.replace(word, name)
    if isinstance(value, Mapping):
        return {key: _fill(part, word, name) for key, part in value.items()}
    return [_fill(part, word, name) for part in value] if isinstance(value, list) else value


def _to_remove(properties: Properties) -> list[str]:
    """Return the entries of the removal policies: names and references of members."""
    return [str(one) for policy in properties["removal_policies"] or () for one in policy["resource_list"]]


def _removed(context: Context, resource: Resource, properties: Properties) -> list[str]:
    """Return the names that must not be used: names removed earlier, and names in the removal policies."""
    removed = resource.data.get("removed") or []
    wanted = _to_remove(properties)
    scope = nested_stacks.scope_of(context, resource)
    if scope is None:
        return sorted({*removed, *wanted})  # without members, no entry can be a member's reference
    names = {*scope.names, *removed}
    # Compared as text, because a nested template may define any value as its reference.
    ids = {str(scope.resource_id(name)): name for name in scope.names} if wanted else {}
    named = {one if one in names else ids.get(one) for one in wanted} - {None}
    return sorted({*(removed if properties["removal_policies_mode"] == "append" else ()), *map(str, named)})


class NumberedGroup(GroupType):
    """A group whose members have numbers as names."""

    policies = rollout.schema(BATCHES, BATCHES)
    has_foreseeable_members = True

    def collect(self, resource: Resource, scope: LiveScope, name: str, path: tuple[Any, ...]) -> Any:
        members = sorted(scope.names, key=int)
        if name == "refs":
            return select([scope.resource_id(member) for member in members], path)
        if name == "attributes":
            return {member: scope.attribute(member, str(path[0]), path[1:]) for member in members} if path else None
        return [scope.attribute(member, name, path) for member in members]


class ResourceGroup(NumberedGroup):
    name = "OS::Heat::ResourceGroup"
    description = "A number of resources of one definition."
    properties = PROPERTIES
    policies = rollout.schema(BATCHES, {**BATCHES, "min_in_service": MIN_IN_SERVICE})

    def definitions(self, resource: Resource, properties: Properties) -> Members:
        return _define(_names(properties["count"], resource.data.get("removed") or ()), properties)

    def select(self, context: Context, resource: Resource, properties: Properties) -> Resource:
        return replace(resource, data={**resource.data, "removed": _removed(context, resource, properties)})

    def adopt(self, context: Context, resource: Resource, properties: Properties) -> Outcome:
        """Take over an abandoned group. Raises ResourceFailure if the data is not that of a group."""
        removed = resource.data.get("removed") or []
        if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed):
            raise ResourceFailure(f"what is adopted says removed: {removed!r:.100}, which is no list of names")
        return super().adopt(context, resource, properties)

    def collect(self, resource: Resource, scope: LiveScope, name: str, path: tuple[Any, ...]) -> Any:
        if name == "removed_rsrc_list":
            return select(resource.data.get("removed") or [], path)
        if name == "refs_map":
            return select({member: scope.resource_id(member) for member in sorted(scope.names, key=int)}, path)
        return super().collect(resource, scope, name, path)

    def members(self, properties: Properties, *, every: bool = False) -> Members:
        """Return the first member as the representative of all; also if the number of members is not known yet."""
        wanted, count = properties["resource_def"], properties["count"]
        if wanted is UNKNOWN or count == 0 or wanted["type"] is UNKNOWN:
            return {}
        if not every or has_unknown([count, properties["removal_policies"]]):
            return _define(["0"], properties)
        return _define(_names(count, _to_remove(properties)), properties)

    def validate(self, properties: Properties) -> None:
        word = properties["index_var"]
        if word is not UNKNOWN and len(word) < 3:
            raise StackValidationFailed(f'index_var: at least 3 characters are needed, not "{word}"')


class ResourceChain(NumberedGroup):
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

    def definitions(self, resource: Resource, properties: Properties) -> Members:
        return self.members(properties, every=True)

    def members(self, properties: Properties, *, every: bool = False) -> Members:
        types = properties["resources"]
        members: dict[str, dict[str, Any]] = {}
        for index, type_name in enumerate(() if types is UNKNOWN else types):
            if type_name is UNKNOWN:
                continue
            member: dict[str, Any] = {"type": type_name, "properties": properties["resource_properties"] or {}}
            if str(index - 1) in members and not properties["concurrent"]:
                member["depends_on"] = [str(index - 1)]
            members[str(index)] = member
        return members
