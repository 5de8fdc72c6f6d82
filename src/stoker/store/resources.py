"""Stack resources in SQL."""

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
_LEFTOVER = sa.select(resources).where(resources.c.stack_id == sa.bindparam("stack"), sa.not_(resources.c.current))
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
_DELETE = sa.delete(resources).where(resources.c.id == sa.bindparam("id_"))


def add_all(tx: Tx, new: Sequence[Resource]) -> None:
    if new:
        tx.run(_ADD, [_columns(each) for each in new])


def save_all(tx: Tx, changed: Iterable[Resource]) -> None:
    values = []
    for each in changed:
        columns = _columns(each)
        values.append({"id_": each.id, **{name: columns[name] for name in _CHANGING}})
    if values:
        tx.run(_SAVE, values)


def delete_all(tx: Tx, ids: Sequence[str]) -> None:
    if ids:
        tx.run(_DELETE, [{"id_": id} for id in ids])


def find(tx: Tx, id: str) -> Resource | None:
    row = tx.run(_GET, {"id": id}).first()
    return None if row is None else _resource(row)


def named(tx: Tx, stack_id: str, name: str) -> Resource | None:
    """The current incarnation."""
    if tx.seen is not None and ("resources", stack_id) in tx.seen:
        known: list[Resource] = tx.seen["resources", stack_id]
        return next((each for each in known if each.current and each.name == name), None)
    row = tx.run(_NAMED, {"stack": stack_id, "name": name}).first()
    return None if row is None else _resource(row)


def with_physical_id(tx: Tx, stack_id: str, physical_id: str) -> Resource | None:
    """The current resource of the stack that stands for that thing."""
    row = tx.run(_PHYSICAL, {"stack": stack_id, "physical": physical_id}).first()
    return None if row is None else _resource(row)


def anywhere(tx: Tx, project_id: str, physical_id: str) -> Resource | None:
    """The current resource of any stack of the project that stands for that thing."""
    row = tx.run(_ANYWHERE, {"project": project_id, "physical": physical_id}).first()
    return None if row is None else _resource(row)


def of_stack(tx: Tx, stack_id: str) -> list[Resource]:
    """All incarnations, also those about to be cleaned up."""
    if tx.seen is not None and ("resources", stack_id) in tx.seen:
        return list(tx.seen["resources", stack_id])
    return [_resource(row) for row in tx.run(_OF_STACK, {"stack": stack_id})]


def look_ahead(tx: Tx, stack_ids: Collection[str]) -> list[Resource]:
    """Those of the stacks; in a reading transaction ``of_stack`` and ``named`` have them from now on."""
    found = [_resource(row) for ids in rows.portions(stack_ids) for row in tx.run(_OF_SEVERAL, {"ids": ids})]
    if tx.seen is not None:
        tx.seen |= {("resources", id): [] for id in stack_ids}
        for each in found:
            tx.seen["resources", each.stack_id].append(each)
    return found


def in_progress(tx: Tx, stack_id: str) -> list[Resource]:
    return [_resource(row) for row in tx.run(_IN_PROGRESS, {"stack": stack_id})]


def leftover(tx: Tx, stack_id: str) -> list[Resource]:
    return [_resource(row) for row in tx.run(_LEFTOVER, {"stack": stack_id})]


def _columns(resource: Resource) -> dict[str, Any]:
    return {
        "id": resource.id,
        "stack_id": resource.stack_id,
        "name": resource.name,
        "type": resource.type,
        "action": resource.action.value,
        "status": resource.status.value,
        "reason": resource.reason,
        "physical_id": resource.physical_id,
        "definition": rows.dump(resource.definition),
        "properties": rows.dump(resource.properties),
        "metadata": rows.dump(resource.metadata),
        "data": rows.dump(resource.data),
        "requires": rows.dump(resource.requires),
        "current": resource.current,
        "hook": resource.hook,
        "created_at": rows.stamp(resource.created_at),
        "updated_at": rows.stamp_optional(resource.updated_at),
    }


def _resource(row: Any) -> Resource:
    return Resource(
        id=row.id,
        stack_id=row.stack_id,
        name=row.name,
        type=row.type,
        action=Action(row.action),
        status=Status(row.status),
        reason=row.reason,
        physical_id=row.physical_id,
        definition=rows.load(row.definition),
        properties=rows.load(row.properties),
        metadata=rows.load(row.metadata),
        data=rows.load(row.data),
        requires=rows.load(row.requires),
        current=row.current,
        hook=row.hook,
        created_at=rows.moment(row.created_at),
        updated_at=rows.moment_optional(row.updated_at),
    )
