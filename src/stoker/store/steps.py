"""The running plan of a stack: its steps, and which waits for which. Every statement's cost is its own edges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from stoker.model.stack import Step, StepState
from stoker.store import rows
from stoker.store.schema import edges, steps
from stoker.store.tx import Tx

_ADD = sa.insert(steps)
_ADD_EDGES = sa.insert(edges)
_GET = sa.select(steps).where(steps.c.stack_id == sa.bindparam("stack"), steps.c.key == sa.bindparam("key"))
_READY = (
    sa.select(steps.c.key)
    .where(steps.c.stack_id == sa.bindparam("stack"), steps.c.waiting == 0, steps.c.state == StepState.WAITING.value)
    .limit(sa.bindparam("limit"))
)
_RUNNING = (
    sa.update(steps)
    .where(steps.c.stack_id == sa.bindparam("stack_"), steps.c.key == sa.bindparam("key_"))
    .values(state=StepState.RUNNING.value)
)
_END = sa.delete(steps).where(steps.c.stack_id == sa.bindparam("stack"), steps.c.key == sa.bindparam("key"))
_RELEASE = (
    sa.update(steps)
    .where(
        steps.c.stack_id == sa.bindparam("stack"),
        steps.c.key.in_(
            sa.select(edges.c.key).where(
                edges.c.stack_id == sa.bindparam("stack"), edges.c.need == sa.bindparam("ended")
            )
        ),
    )
    .values(waiting=steps.c.waiting - 1)
    .returning(steps.c.key, steps.c.waiting)
)
_CLEAR = sa.delete(steps).where(steps.c.stack_id == sa.bindparam("stack"))
_CLEAR_EDGES = sa.delete(edges).where(edges.c.stack_id == sa.bindparam("stack"))


def add_all(tx: Tx, new: Iterable[Step], needs: Iterable[tuple[str, str, str]]) -> None:
    """``needs``: (stack id, what is needed, by whom)."""
    values = [
        {
            "stack_id": step.stack_id,
            "key": step.key,
            "waiting": step.waiting,
            "state": step.state.value,
            "definition": None if step.definition is None else rows.dump(step.definition),
        }
        for step in new
    ]
    if values:
        tx.run(_ADD, values)
    pairs = [{"stack_id": stack, "need": need, "key": key} for stack, need, key in needs]
    if pairs:
        tx.run(_ADD_EDGES, pairs)


def get(tx: Tx, stack_id: str, key: str) -> Step | None:
    row = tx.run(_GET, {"stack": stack_id, "key": key}).first()
    if row is None:
        return None
    return Step(
        stack_id=row.stack_id,
        key=row.key,
        waiting=row.waiting,
        state=StepState(row.state),
        definition=rows.load_optional(row.definition),
    )


def ready(tx: Tx, stack_id: str, limit: int) -> list[str]:
    return list(tx.run(_READY, {"stack": stack_id, "limit": limit}).scalars())


def set_running(tx: Tx, stack_id: str, keys: Sequence[str]) -> None:
    if keys:
        tx.run(_RUNNING, [{"stack_": stack_id, "key_": key} for key in keys])


def end(tx: Tx, stack_id: str, key: str) -> list[str]:
    """Remove a step that has ended; return those that waited for nothing else."""
    tx.run(_END, {"stack": stack_id, "key": key})
    return [row.key for row in tx.run(_RELEASE, {"stack": stack_id, "ended": key}) if row.waiting == 0]


def clear(tx: Tx, stack_id: str) -> None:
    tx.run(_CLEAR, {"stack": stack_id})
    tx.run(_CLEAR_EDGES, {"stack": stack_id})
