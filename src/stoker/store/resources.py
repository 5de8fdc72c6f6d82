"""Queries for resources of stacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import sqlalchemy as sa

from stoker.model.stack import Resource
from stoker.model.status import Status
from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import resources, stacks
from stoker.store.tx import Tx

_RESOURCES = Repository(Resource, resources, fixed=("stack_id", "name", "created_at"))
_OF_STACK = _RESOURCES.by("stack_id").order_by(resources.c.name)
_OF_SEVERAL = _RESOURCES.select(resources.c.stack_id.in_(sa.bindparam("ids", expanding=True))).order_by(
    resources.c.stack_id, resources.c.name
)
_NAMED = _RESOURCES.by("stack_id", "name").where(resources.c.current)
_IN_PROGRESS = _RESOURCES.by("stack_id").where(resources.c.status == Status.IN_PROGRESS.value)
_PHYSICAL = _RESOURCES.by("stack_id", "physical_id").where(resources.c.current)
_ANYWHERE = (
    _RESOURCES.by("physical_id")
    .join(stacks, stacks.c.id == resources.c.stack_id)
    .where(stacks.c.project_id == sa.bindparam("project_id"), resources.c.current)
    .limit(1)
)
_OUTDATED = _RESOURCES.by("stack_id").where(sa.not_(resources.c.current))
_RETIRED = _RESOURCES.by("stack_id", "name").where(sa.not_(resources.c.current)).order_by(resources.c.created_at)
_ARE_MANY = (
    sa.select(resources.c.id)
    .join_from(stacks, resources, resources.c.stack_id == stacks.c.id)
    .where(stacks.c.root_id == sa.bindparam("root"))
    .limit(1)
    .offset(sa.bindparam("many"))
)
_ANY_OF_TYPES = (
    sa.select(resources.c.id)
    .join_from(stacks, resources, resources.c.stack_id == stacks.c.id)
    .where(stacks.c.root_id == sa.bindparam("root"), resources.c.type.in_(sa.bindparam("types", expanding=True)))
    .limit(1)
)
_DELETE = statements.delete(resources, "id")


def add_all(tx: Tx, new: Sequence[Resource]) -> None:
    """Insert resources."""
    _RESOURCES.add_all(tx, new)


def save_all(tx: Tx, changed: Iterable[Resource]) -> None:
    """Write the changeable columns of resources."""
    _RESOURCES.save_all(tx, changed)


def are_many(tx: Tx, root_id: str, many: int) -> bool:
    """Return whether the tree of stacks below this root has more than ``many`` resources."""
    return tx.execute_fast(_ARE_MANY, {"root": root_id, "many": many}) is not None


def any_of_types(tx: Tx, root_id: str, types: Sequence[str]) -> bool:
    """Return whether the tree of stacks below this root has a resource of one of these types."""
    return tx.run(_ANY_OF_TYPES, {"root": root_id, "types": types}).first() is not None


def delete_all(tx: Tx, ids: Sequence[str]) -> None:
    """Delete the resources with these ids."""
    tx.run_many(_DELETE, [{"id": id} for id in ids])


def find(tx: Tx, id: str) -> Resource | None:
    """Return the resource with this id, or None."""
    return _RESOURCES.find(tx, id)


def find_by_name(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """Return the current incarnation of the resource with this name, or None."""
    if tx.prefetched is not None and ("resources", stack_id) in tx.prefetched:
        of_stack: list[Resource] = tx.prefetched["resources", stack_id]
        return next((resource for resource in of_stack if resource.current and resource.name == name), None)
    return _RESOURCES.first(tx, _NAMED, {"stack_id": stack_id, "name": name})


def with_physical_id(tx: Tx, stack_id: str, physical_id: str) -> Resource | None:
    """Return the stack's current resource with this physical id, or None."""
    return _RESOURCES.first(tx, _PHYSICAL, {"stack_id": stack_id, "physical_id": physical_id})


def anywhere(tx: Tx, project_id: str, physical_id: str) -> Resource | None:
    """Return the current resource with this physical id in any stack of the project, or None."""
    return _RESOURCES.first(tx, _ANYWHERE, {"project_id": project_id, "physical_id": physical_id})


def of_stack(tx: Tx, stack_id: str) -> list[Resource]:
    """Return all incarnations of the stack's resources, including outdated ones."""
    if tx.prefetched is not None and ("resources", stack_id) in tx.prefetched:
        return list(tx.prefetched["resources", stack_id])
    return _RESOURCES.all(tx, _OF_STACK, {"stack_id": stack_id})


def prefetch(tx: Tx, stack_ids: Collection[str]) -> list[Resource]:
    """
    Load the resources of several stacks at once.

    In a read transaction, ``of_stack`` and ``find_by_name`` return them from memory afterwards.
    """
    loaded = _RESOURCES.several(tx, _OF_SEVERAL, stack_ids)
    if tx.prefetched is not None:
        tx.prefetched |= {("resources", id): [] for id in stack_ids}
        for resource in loaded:
            tx.prefetched["resources", resource.stack_id].append(resource)
    return loaded


def in_progress(tx: Tx, stack_id: str) -> list[Resource]:
    """Return the stack's resources that are IN_PROGRESS."""
    return _RESOURCES.all(tx, _IN_PROGRESS, {"stack_id": stack_id})


def retired(tx: Tx, stack_id: str, name: str) -> list[Resource]:
    """Return the incarnations of the resource with this name that are no longer current, the oldest first."""
    return _RESOURCES.all(tx, _RETIRED, {"stack_id": stack_id, "name": name})


def outdated(tx: Tx, stack_id: str) -> list[Resource]:
    """Return the stack's incarnations that are no longer current."""
    return _RESOURCES.all(tx, _OUTDATED, {"stack_id": stack_id})
