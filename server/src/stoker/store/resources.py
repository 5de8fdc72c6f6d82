"""Queries for resources of stacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

from stoker.model.stack import Resource, Status
from stoker.store import rows
from stoker.store.query import execute, exists
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

_RESOURCES = Repository(Resource, "resources", fixed=("stack_id", "name", "created_at"))
_OF_STACK = _RESOURCES.select("stack_id = :stack_id ORDER BY name")
_list_of_stacks: Callable[[Tx, Collection[str]], list[Resource]] = _RESOURCES.lister(
    "stack_id @in(ids) ORDER BY stack_id, name"
)
find = _RESOURCES.find
_find_named: Callable[[Tx, str, str], Resource | None] = _RESOURCES.finder(
    "stack_id = :stack_id AND name = :name AND current"
)
#: Return the current incarnations of a stack's resources with these names.
of_names: Callable[[Tx, str, Sequence[str]], list[Resource]] = _RESOURCES.lister(
    "stack_id = :stack_id AND current AND name @in(names)"
)
#: Return a stack's resources that are IN_PROGRESS.
in_progress: Callable[[Tx, str], list[Resource]] = _RESOURCES.lister(
    f"stack_id = :stack_id AND status = '{Status.IN_PROGRESS}'"
)
#: Return a stack's current resource with a physical id, or None.
with_physical_id: Callable[[Tx, str, str], Resource | None] = _RESOURCES.finder(
    "stack_id = :stack_id AND physical_id = :physical_id AND current"
)
_ANYWHERE = (
    "physical_id = :physical_id"
    " AND EXISTS (SELECT 1 FROM stacks WHERE stacks.id = stack_id AND project_id = :project_id)"
)
#: Return the current resource with a physical id in any stack of a project, or None.
anywhere: Callable[[Tx, str, str], Resource | None] = _RESOURCES.finder(f"{_ANYWHERE} AND current LIMIT 1")
#: Return all incarnations of resources with a physical id in the stacks of a project.
all_with_physical_id: Callable[[Tx, str, str], list[Resource]] = _RESOURCES.lister(_ANYWHERE)
#: Return a stack's incarnations that are no longer current.
outdated: Callable[[Tx, str], list[Resource]] = _RESOURCES.lister("stack_id = :stack_id AND NOT current")
#: Return the incarnations of a stack's resource with a name that are no longer current, the oldest first.
retired: Callable[[Tx, str, str], list[Resource]] = _RESOURCES.lister(
    "stack_id = :stack_id AND name = :name AND NOT current ORDER BY created_at"
)
_OF_TREE = "SELECT resources.id FROM stacks JOIN resources ON stack_id = stacks.id WHERE root_id = :root"
#: Return whether the tree of stacks below a root has more resources than a number.
are_many: Callable[[Tx, str, int], bool] = exists(f"{_OF_TREE} LIMIT 1 OFFSET :many")
#: Return whether the tree of stacks below a root has a resource of one of these types.
any_of_types: Callable[[Tx, str, Sequence[str]], bool] = exists(f"{_OF_TREE} AND type @in(types) LIMIT 1")
#: Return a stack's current resource with a name, or one that is being deleted if there is no current one, or None.
shown: Callable[[Tx, str, str], Resource | None] = _RESOURCES.finder(
    "stack_id = :stack_id AND name = :name ORDER BY current DESC, created_at LIMIT 1"
)
#: JSON maps that may contain a name.
_MAY_REQUIRE = sql(
    "SELECT name, requires FROM resources WHERE stack_id = :stack_id AND @position(requires, :name) > 0 AND (current"
    " OR NOT EXISTS (SELECT 1 FROM resources AS new WHERE new.stack_id = resources.stack_id"
    " AND new.name = resources.name AND new.current)) ORDER BY name"
)
#: Insert new resources and write the changeable columns of others, with the next statement.
save_all = partial(_RESOURCES.add_all, replace=True)
#: Delete the resources with these ids.
delete_all: Callable[[Tx, Sequence[str]], None] = execute("DELETE FROM resources WHERE id @in(ids)")

#: In ``Tx.cache``: the resources of a stack.
_OF = "resources of stack"


def find_by_name(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """Return the current incarnation of the resource with this name, or None."""
    if (_OF, stack_id) in tx.cache:
        of_stack: list[Resource] = tx.cache[_OF, stack_id]
        return next((resource for resource in of_stack if resource.current and resource.name == name), None)
    return _find_named(tx, stack_id, name)


def required_by(tx: Tx, stack_id: str, name: str) -> list[str]:
    """Return the names of the shown resources that require the resource with this name, sorted."""
    candidates = tx.fetch_all(_MAY_REQUIRE, {"stack_id": stack_id, "name": f"{rows.dump(name)}:"})
    return list(dict.fromkeys(dependent for dependent, requires in candidates if name in rows.load(requires)))


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
    loaded = _list_of_stacks(tx, stack_ids)
    if tx.is_reading:
        tx.cache |= {(_OF, id): [] for id in stack_ids}
        for resource in loaded:
            tx.cache[_OF, resource.stack_id].append(resource)
    return loaded
