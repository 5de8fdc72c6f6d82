"""Checks of the objects that a new stack adopts. All problems are found before the stack exists."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from stoker.model.errors import Conflict, Invalid
from stoker.resources.base import ResourceType
from stoker.resources.cloud import Constraints
from stoker.store import cloud_objects, resources, stacks
from stoker.store.tx import Tx

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def refuse_missing(
    types: Mapping[str, ResourceType], adopted: Mapping[str, Any], constraints: Constraints | None
) -> None:
    """
    Refuse objects that the cloud does not have. Must not be called in a transaction.

    ``adopted``: the resources of the adoption data. Raises Invalid with all of them.
    """
    if constraints is None:
        return
    problems = []
    for path, entry in _cloud_resources(types, adopted):
        constraint = types[entry["type"]].id_constraint
        if constraint and (problem := constraints.find_problem(constraint, entry["resource_id"])):
            problems.append(f"{path}: {problem}")
    if problems:
        raise Invalid(f"The stack cannot be adopted, because the cloud lacks objects: {'; '.join(problems)}")


def refuse_owned(tx: Tx, types: Mapping[str, ResourceType], adopted: Mapping[str, Any], project_id: str) -> None:
    """Refuse objects that belong to a resource already. Raises Conflict with all of them."""
    wanted = {entry["resource_id"]: path for path, entry in _cloud_resources(types, adopted)}
    problems = {}
    for item in cloud_objects.with_external_ids(tx, wanted.keys()):
        external_id = str(item.external_id)
        # Only names, such as those of key pairs, can be the same in several projects.
        if item.project_id != project_id and not _UUID.fullmatch(external_id):
            continue
        owner = resources.find(tx, item.id)
        if owner is None or owner.definition.get("external_id"):
            continue
        name = stacks.get(tx, owner.stack_id).name if item.project_id == project_id else "another project"
        problems[wanted[external_id]] = f"{wanted[external_id]}: {external_id} belongs to {owner.name} of {name}"
    if problems:
        listed = "; ".join(problems[path] for path in sorted(problems))
        raise Conflict(f"The stack cannot be adopted, because other stacks have its objects: {listed}")


def _cloud_resources(
    types: Mapping[str, ResourceType], adopted: Mapping[str, Any], above: str = ""
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the path and the entry of each resource, at any depth, that takes over an object of a cloud."""
    for name, entry in adopted.items():
        if not isinstance(entry, Mapping):
            continue
        resource_type = types.get(str(entry.get("type")))
        if resource_type is not None and resource_type.needs_cloud and isinstance(entry.get("resource_id"), str):
            yield f"{above}{name}", entry
        if isinstance(inner := entry.get("resources"), Mapping):
            yield from _cloud_resources(types, inner, f"{above}{name}/")
