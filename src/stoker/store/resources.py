"""Queries for resources of stacks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from stoker.model.stack import Resource
from stoker.model.status import Action, Status
from stoker.store import rows
from stoker.store.schema import resources, stacks
from stoker.store.tx import Tx

_ADD = sa.insert(resources)
_GET = sa.select(resources).where(resources.c.id == sa.bindparam("id"))
_OF_STACK = sa.select(resources).where(resources.c.stack_id == sa.bindparam("stack")).order_by(resources.c.name)
_OF_SEVERAL = (
    sa.select(resources)
    .where(resources.c.stack_id.in_(sa.bindparam("ids", expanding=True)))
    .order_by(resources.c.stack_id, resources.c.name)
)
_NAMED = sa.select(resources).where(
    resources.c.stack_id == sa.bindparam("stack"), resources.c.name == sa.bindparam("name"), resources.c.current
)
_IN_PROGRESS = sa.select(resources).where(
    resources.c.stack_id == sa.bindparam("stack"), resources.c.status == Status.IN_PROGRESS.value
)
_PHYSICAL = sa.select(resources).where(
    resources.c.stack_id == sa.bindparam("stack"),
    resources.c.physical_id == sa.bindparam("physical"),
    resources.c.current,
)
_ANYWHERE = (
    sa.select(resources)
    .join(stacks, stacks.c.id == resources.c.stack_id)
    .where(
        stacks.c.project_id == sa.bindparam("project"),
        resources.c.physical_id == sa.bindparam("physical"),
        resources.c.current,
    )
    .limit(1)
)
_OUTDATED = sa.select(resources).where(resources.c.stack_id == sa.bindparam("stack"), sa.not_(resources.c.current))
_CHANGING = (
    "action",
    "status",
    "reason",
    "physical_id",
    "type",
    "definition",
    "properties",
    "metadata",
    "data",
    "requires",
    "current",
    "hook",
    "updated_at",
)
_SAVE = (
    sa.update(resources)
    .where(resources.c.id == sa.bindparam("id_"))
    .values({name: sa.bindparam(name) for name in _CHANGING})
)
_ARE_MANY = (
    sa.select(resources.c.id)
    .join_from(stacks, resources, resources.c.stack_id == stacks.c.id)
    .where(stacks.c.root_id == sa.bindparam("root"))
    .limit(1)
    .offset(sa.bindparam("many"))
)
_DELETE = sa.delete(resources).where(resources.c.id == sa.bindparam("id_"))


def add_all(tx: Tx, new: Sequence[Resource]) -> None:
    """Insert resources."""
    tx.run_many(_ADD, [_columns(tx, each) for each in new])


def save_all(tx: Tx, changed: Iterable[Resource]) -> None:
    """Write the changeable columns of resources."""
    values = []
    for each in changed:
        columns = _columns(tx, each)
        values.append({"id_": each.id, **{name: columns[name] for name in _CHANGING}})
    if values:
        tx.run(_SAVE, values)


def are_many(tx: Tx, root_id: str, many: int) -> bool:
    """Return whether the tree of stacks below this root has more than ``many`` resources."""
    return tx.run(_ARE_MANY, {"root": root_id, "many": many}).first() is not None


def delete_all(tx: Tx, ids: Sequence[str]) -> None:
    """Delete the resources with these ids."""
    if ids:
        tx.run(_DELETE, [{"id_": id} for id in ids])


def find(tx: Tx, id: str) -> Resource | None:
    """Return the resource with this id, or None."""
    row = tx.run(_GET, {"id": id}).first()
    return None if row is None else _resource(tx, row)


def find_by_name(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """Return the current incarnation of the resource with this name, or None."""
    if tx.prefetched is not None and ("resources", stack_id) in tx.prefetched:
        known: list[Resource] = tx.prefetched["resources", stack_id]
        return next((each for each in known if each.current and each.name == name), None)
    row = tx.run(_NAMED, {"stack": stack_id, "name": name}).first()
    return None if row is None else _resource(tx, row)


def with_physical_id(tx: Tx, stack_id: str, physical_id: str) -> Resource | None:
    """Return the stack's current resource with this physical id, or None."""
    row = tx.run(_PHYSICAL, {"stack": stack_id, "physical": physical_id}).first()
    return None if row is None else _resource(tx, row)


def anywhere(tx: Tx, project_id: str, physical_id: str) -> Resource | None:
    """Return the current resource with this physical id in any stack of the project, or None."""
    row = tx.run(_ANYWHERE, {"project": project_id, "physical": physical_id}).first()
    return None if row is None else _resource(tx, row)


def of_stack(tx: Tx, stack_id: str) -> list[Resource]:
    """Return all incarnations of the stack's resources, including outdated ones."""
    if tx.prefetched is not None and ("resources", stack_id) in tx.prefetched:
        return list(tx.prefetched["resources", stack_id])
    return [_resource(tx, row) for row in tx.run(_OF_STACK, {"stack": stack_id})]


def prefetch(tx: Tx, stack_ids: Collection[str]) -> list[Resource]:
    """
    Load the resources of several stacks at once.

    In a read transaction, ``of_stack`` and ``find_by_name`` return them from memory afterwards.
    """
    found = [_resource(tx, row) for ids in rows.portions(stack_ids) for row in tx.run(_OF_SEVERAL, {"ids": ids})]
    if tx.prefetched is not None:
        tx.prefetched |= {("resources", id): [] for id in stack_ids}
        for each in found:
            tx.prefetched["resources", each.stack_id].append(each)
    return found


def in_progress(tx: Tx, stack_id: str) -> list[Resource]:
    """Return the stack's resources that are IN_PROGRESS."""
    return [_resource(tx, row) for row in tx.run(_IN_PROGRESS, {"stack": stack_id})]


def outdated(tx: Tx, stack_id: str) -> list[Resource]:
    """Return the stack's incarnations that are no longer current."""
    return [_resource(tx, row) for row in tx.run(_OUTDATED, {"stack": stack_id})]


def _columns(tx: Tx, resource: Resource) -> dict[str, Any]:
    dump = tx.secrets.dump
    return {
        "id": resource.id,
        "stack_id": resource.stack_id,
        "name": resource.name,
        "type": resource.type,
        "action": resource.action.value,
        "status": resource.status.value,
        "reason": tx.secrets.redact_text(resource.reason),
        "physical_id": resource.physical_id,
        "definition": dump(resource.definition),
        "properties": dump(resource.properties),
        "metadata": dump(resource.metadata),
        "data": dump(resource.data),
        "requires": rows.dump(resource.requires),
        "current": resource.current,
        "hook": resource.hook,
        "created_at": rows.to_micros(resource.created_at),
        "updated_at": rows.to_micros_optional(resource.updated_at),
    }


def _resource(tx: Tx, row: Any) -> Resource:
    load = tx.secrets.load
    return Resource(
        id=row.id,
        stack_id=row.stack_id,
        name=row.name,
        type=row.type,
        action=Action(row.action),
        status=Status(row.status),
        reason=row.reason,
        physical_id=row.physical_id,
        definition=load(row.definition),
        properties=load(row.properties),
        metadata=load(row.metadata),
        data=load(row.data),
        requires=rows.load(row.requires),
        current=row.current,
        hook=row.hook,
        created_at=rows.from_micros(row.created_at),
        updated_at=rows.from_micros_optional(row.updated_at),
    )
