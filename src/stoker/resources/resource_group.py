"""OS::Heat::ResourceGroup: as many resources of one definition as are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from stoker.hot import UNKNOWN, select
from stoker.model.errors import StackValidationFailed
from stoker.model.stack import Resource
from stoker.resources import batches, nesting
from stoker.resources.base import Context, Outcome, Properties, ResourceFailure, ResourceType
from stoker.resources.batches import BATCHES, MIN_IN_SERVICE
from stoker.resources.grouping import Group
from stoker.resources.properties import Property
from stoker.resources.rolling import Members
from stoker.resources.services import Look

#: Members of a group. A request's share of memory and time, not a wish.
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


def _members(resource: Resource, properties: Properties) -> Members:
    names = _names(properties["count"], resource.data.get("removed") or ())
    return {name: _member(name, properties) for name in names}


def _names(count: int, removed: Iterable[str]) -> list[str]:
    unused, index = set(removed), 0
    names: list[str] = []
    while len(names) < count:
        if str(index) not in unused:
            names.append(str(index))
        index += 1
    return names


def _member(name: str, properties: Properties) -> dict[str, Any]:
    wanted = properties["resource_def"]
    said = {
        "type": wanted["type"],
        "properties": _filled(wanted.get("properties") or {}, properties["index_var"], name),
        "metadata": wanted.get("metadata"),
    }
    return {key: part for key, part in said.items() if part is not None}


def _filled(value: Any, word: str, name: str) -> Any:
    if isinstance(value, str):
        return value.replace(word, name)
    if isinstance(value, Mapping):
        return {key: _filled(part, word, name) for key, part in value.items()}
    return [_filled(part, word, name) for part in value] if isinstance(value, list) else value


def validate(properties: Properties) -> None:
    word = properties["index_var"]
    if word is not UNKNOWN and len(word) < 3:
        raise StackValidationFailed(f'index_var: at least 3 characters are needed, not "{word}"')


_GROUP = Group(_members, batches.schema(BATCHES, {**BATCHES, "min_in_service": MIN_IN_SERVICE}))


def update(context: Context, resource: Resource, properties: Properties) -> Outcome:
    data = {**resource.data, "removed": _removed(context, resource, properties)}
    return _GROUP.update(context, replace(resource, data=data), properties)


def adopt(context: Context, resource: Resource, properties: Properties) -> Outcome:
    """Raises ResourceFailure for data that no group has left behind."""
    removed = resource.data.get("removed") or []
    if not isinstance(removed, list) or not all(isinstance(name, str) for name in removed):
        raise ResourceFailure(f"what is adopted says removed: {removed!r:.100}, which is no list of names")
    return _GROUP.adopt(context, resource, properties)


def _removed(context: Context, resource: Resource, properties: Properties) -> list[str]:
    """Names that are not to be used: those removed before, and those that the policies name."""
    before = resource.data.get("removed") or [] if properties["removal_policies_mode"] == "append" else []
    look = context.nested.look(context, resource)
    names = list(look.names) if look else []
    # Texts: an inner template may make its reference anything.
    ids = {str(look.reference(name)): name for name in names} if look else {}
    said = [str(one) for policy in properties["removal_policies"] or () for one in policy["resource_list"]]
    found = [one if one in names else ids.get(one) for one in said]
    return list(dict.fromkeys([*before, *(name for name in found if name is not None)]))


def attribute(context: Context, resource: Resource, name: str, path: tuple[Any, ...]) -> Any:
    """A name of no attribute of its own means that attribute of every member, in a list."""
    if name.startswith("resource."):
        return nesting.inside(context, resource, name, path)
    look = context.nested.look(context, resource)
    if look is None:
        return None
    members = sorted(look.names, key=int)
    if name in _OWN:
        return select(_OWN[name](resource, look, members), path)
    if name == "attributes":
        return _of_each(look, members, path)
    return [look.attribute(each, name, path) for each in members]


_OWN: Mapping[str, Callable[[Resource, Look, Sequence[str]], Any]] = {
    "removed_rsrc_list": lambda resource, _, __: resource.data.get("removed") or [],
    "refs": lambda _, look, names: [look.reference(each) for each in names],
    "refs_map": lambda _, look, names: {each: look.reference(each) for each in names},
}


def _of_each(look: Look, members: Sequence[str], path: tuple[Any, ...]) -> Any:
    if not path:
        return None  # which one stands behind it
    wanted, *rest = path
    return {each: look.attribute(each, str(wanted), tuple(rest)) for each in members}


def members(properties: Properties) -> Iterable[tuple[str, str, Properties]]:
    wanted = properties["resource_def"]
    if wanted is UNKNOWN or properties["count"] == 0 or wanted["type"] is UNKNOWN:
        return ()
    given = wanted.get("properties")
    return (("0", wanted["type"], {} if given is UNKNOWN else _filled(given or {}, str(properties["index_var"]), "0")),)


TYPE = ResourceType(
    name="OS::Heat::ResourceGroup",
    properties=PROPERTIES,
    attributes=None,
    create=_GROUP.create,
    update=update,
    delete=nesting.delete,
    check=_GROUP.check,
    check_policy=_GROUP.check_policy,
    adopt=adopt,
    exists=nesting.exists,
    cancel=nesting.cancel,
    is_stale=nesting.is_stale,
    actions=nesting.ACTIONS,
    attribute_at=attribute,
    reference=nesting.reference,
    members=members,
    validate=validate,
    retries=True,
    description="A number of resources of one definition.",
)
