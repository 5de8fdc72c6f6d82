"""Queries for resources of stacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from stoker.model.stack import Resource
from stoker.model.status import Status
from stoker.store import rows
from stoker.store.repository import Repository
from stoker.store.sql import delete, sql
from stoker.store.tx import Tx

_RESOURCES = Repository(Resource, "resources", fixed=("stack_id", "name", "created_at"))
_OF_STACK = _RESOURCES.select("stack_id = :stack_id ORDER BY name")
_OF_SEVERAL = _RESOURCES.select("stack_id @in(ids) ORDER BY stack_id, name")
_NAMED = _RESOURCES.select("stack_id = :stack_id AND name = :name AND current")
_OF_NAMES = _RESOURCES.select("stack_id = :stack_id AND current AND name @in(names)")
_IN_PROGRESS = _RESOURCES.select(f"stack_id = :stack_id AND status = '{Status.IN_PROGRESS}'")
_PHYSICAL = _RESOURCES.select("stack_id = :stack_id AND physical_id = :physical_id AND current")
_ANYWHERE = sql(
    f"SELECT {_RESOURCES.columns_sql()} FROM resources JOIN stacks ON stacks.id = resources.stack_id"
    " WHERE stacks.project_id = :project_id AND resources.physical_id = :physical_id AND resources.current LIMIT 1"
)
_OUTDATED = _RESOURCES.select("stack_id = :stack_id AND NOT current")
_RETIRED = _RESOURCES.select("stack_id = :stack_id AND name = :name AND NOT current ORDER BY created_at")
_OF_TREE = "SELECT resources.id FROM stacks JOIN resources ON stack_id = stacks.id WHERE root_id = :root"
_ARE_MANY = sql(f"{_OF_TREE} LIMIT 1 OFFSET :many")
_ANY_OF_TYPES = sql(f"{_OF_TREE} AND type @in(types) LIMIT 1")
#: The current resource of a name, else those that are being deleted.
_SHOWN = _RESOURCES.select("stack_id = :stack_id AND name = :name ORDER BY current DESC, created_at LIMIT 1")
#: JSON maps that may contain a name.
_MAY_REQUIRE = sql(
    "SELECT name, requires FROM resources WHERE stack_id = :stack_id AND @position(requires, :name) > 0 AND (current"
    " OR NOT EXISTS (SELECT 1 FROM resources AS new WHERE new.stack_id = resources.stack_id"
    " AND new.name = resources.name AND new.current)) ORDER BY name"
)
_DELETE = delete("resources", "id")

#: In ``Tx.cache``: the resources of a stack.
_OF = "resources of stack"


def save_all(tx: Tx, changed: Iterable[Resource]) -> None:
    """Insert new resources and write the changeable columns of others, with the next statement."""
    _RESOURCES.add_all(tx, changed, replace=True)


def are_many(tx: Tx, root_id: str, many: int) -> bool:
    """Return whether the tree of stacks below this root has more than ``many`` resources."""
    return tx.execute_fast(_ARE_MANY, {"root": root_id, "many": many}) is not None


def any_of_types(tx: Tx, root_id: str, types: Sequence[str]) -> bool:
    """Return whether the tree of stacks below this root has a resource of one of these types."""
    return tx.execute_fast(_ANY_OF_TYPES, {"root": root_id, "types": rows.dump(types)}) is not None


def delete_all(tx: Tx, ids: Sequence[str]) -> None:
    """Delete the resources with these ids."""
    tx.run_many(_DELETE, [{"id": id} for id in ids])


def find(tx: Tx, id: str) -> Resource | None:
    """Return the resource with this id, or None."""
    return _RESOURCES.find(tx, id)


def find_by_name(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """Return the current incarnation of the resource with this name, or None."""
    if (_OF, stack_id) in tx.cache:
        of_stack: list[Resource] = tx.cache[_OF, stack_id]
        return next((resource for resource in of_stack if resource.current and resource.name == name), None)
    return _RESOURCES.first(tx, _NAMED, {"stack_id": stack_id, "name": name})


def of_names(tx: Tx, stack_id: str, names: Sequence[str]) -> list[Resource]:
    """Return the current incarnations of the resources with these names."""
    return _RESOURCES.all(tx, _OF_NAMES, {"stack_id": stack_id, "names": rows.dump(names)})


def shown(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """Return the current resource with this name, or one that is being deleted if there is no current one, or None."""
    return _RESOURCES.first(tx, _SHOWN, {"stack_id": stack_id, "name": name})


def required_by(tx: Tx, stack_id: str, name: str) -> list[str]:
    """Return the names of the shown resources that require the resource with this name, sorted."""
    candidates = tx.fetch_all(_MAY_REQUIRE, {"stack_id": stack_id, "name": f"{rows.dump(name)}:"})
    return list(dict.fromkeys(dependent for dependent, requires in candidates if name in rows.load(requires)))


def with_physical_id(tx: Tx, stack_id: str, physical_id: str) -> Resource | None:
    """Return the stack's current resource with this physical id, or None."""
    return _RESOURCES.first(tx, _PHYSICAL, {"stack_id": stack_id, "physical_id": physical_id})


def anywhere(tx: Tx, project_id: str, physical_id: str) -> Resource | None:
    """Return the current resource with this physical id in any stack of the project, or None."""
    return _RESOURCES.first(tx, _ANYWHERE, {"project_id": project_id, "physical_id": physical_id})


def of_stack(tx: Tx, stack_id: str) -> list[Resource]:
    """Return all incarnations of the stack's resources, including outdated ones."""
    if (_OF, stack_id) in tx.cache:
        return list(tx.cache[_OF, stack_id])
    return _RESOURCES.all(tx, _OF_STACK, {"stack_id": stack_id})


def prime(tx: Tx, stack_ids: Collection[str]) -> list[Resource]:
    """
    Load the resources of several stacks at once.

    In a read transaction, ``of_stack`` and ``find_by_name`` return them from memory afterwards.
    """
    loaded = _RESOURCES.several(tx, _OF_SEVERAL, stack_ids)
    if tx.is_reading:
        tx.cache |= {(_OF, id): [] for id in stack_ids}
        for resource in loaded:
            tx.cache[_OF, resource.stack_id].append(resource)
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
