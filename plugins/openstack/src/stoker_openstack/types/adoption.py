"""Checks of the objects at a cloud that a new stack would adopt, before the stack exists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stoker.backends.provider import Constraints
from stoker.model.errors import Conflict, Invalid
from stoker.model.ids import is_id
from stoker.resources.base import ResourceType
from stoker.store import resources, stacks
from stoker.store.tx import Tx
from stoker_openstack.model import CONSTRAINTS
from stoker_openstack.store import cloud_objects
from stoker_openstack.types.cloud_base import CloudType


def refuse_missing(types: Mapping[str, ResourceType], adopted: Mapping[str, Any], constraints: Constraints) -> None:
    """Raise Invalid with all objects of the adoption that the cloud lacks; see ``Provider.refuse_missing``."""
    names = {kind: name for name, kind in CONSTRAINTS.items()}
    problems = [
        f"{path}: {problem}"
        for path, type_, id in _list_objects(types, adopted)
        if type_.kind in names and (problem := constraints.find_problem(names[type_.kind], id))
    ]
    if problems:
        raise Invalid(f"The stack cannot be adopted, because the cloud lacks objects: {'; '.join(problems)}")


def refuse_owned(tx: Tx, types: Mapping[str, ResourceType], adopted: Mapping[str, Any], project_id: str) -> None:
    """Raise Conflict with all objects of the adoption that belong to a resource already."""
    wanted = {id: path for path, _, id in _list_objects(types, adopted)}
    problems = {}
    for item in cloud_objects.with_external_ids(tx, wanted.keys()):
        external_id = str(item.external_id)
        # Only names, such as those of key pairs, can be the same in several projects.
        if item.project_id != project_id and not is_id(external_id):
            continue
        owner = resources.find(tx, item.id)
        if owner is None or owner.definition.get("external_id"):
            continue
        name = stacks.get(tx, owner.stack_id).name if item.project_id == project_id else "another project"
        problems[wanted[external_id]] = f"{wanted[external_id]}: {external_id} belongs to {owner.name} of {name}"
    if problems:
        listed = "; ".join(problems[path] for path in sorted(problems))
        raise Conflict(f"The stack cannot be adopted, because other stacks have its objects: {listed}")


def _list_objects(
    types: Mapping[str, ResourceType], adopted: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, CloudType, str]]:
    """Yield path, type and id of each object of a cloud that a resource, at any depth, takes over."""
    for name, entry in adopted.items():
        if not isinstance(entry, Mapping):
            continue
        kind = types.get(str(entry.get("type")))
        if isinstance(kind, CloudType) and isinstance(entry.get("resource_id"), str):
            yield f"{above}{name}", kind, entry["resource_id"]
        if isinstance(inner := entry.get("resources"), Mapping):
            yield from _list_objects(types, inner, f"{above}{name}/")
