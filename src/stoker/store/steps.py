"""
Queries for the current plan of a stack: its steps and their dependencies.

The cost of each statement depends only on the dependencies of its own step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from stoker.model.stack import Step, StepState
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
    """
    Insert steps and their dependencies. ``needs`` are (stack id, key of the required step, key of the dependent step).
    """
    values = [
        {
            "stack_id": step.stack_id,
            "key": step.key,
            "waiting": step.waiting,
            "state": step.state.value,
            "definition": None if step.definition is None else tx.secrets.dump(step.definition),
        }
        for step in new
    ]
    tx.run_many(_ADD, values)
    pairs = [{"stack_id": stack, "need": need, "key": key} for stack, need, key in needs]
    tx.run_many(_ADD_EDGES, pairs)


def get(tx: Tx, stack_id: str, key: str) -> Step | None:
    """Return the step, or None."""
    row = tx.run(_GET, {"stack": stack_id, "key": key}).first()
    if row is None:
        return None
    return Step(
        stack_id=row.stack_id,
        key=row.key,
        waiting=row.waiting,
        state=StepState(row.state),
        definition=None if row.definition is None else tx.secrets.load(row.definition),
    )


def ready(tx: Tx, stack_id: str, limit: int) -> list[str]:
    """Return the keys of at most ``limit`` waiting steps without unfinished requirements."""
    return list(tx.run(_READY, {"stack": stack_id, "limit": limit}).scalars())


def set_running(tx: Tx, stack_id: str, keys: Sequence[str]) -> None:
    """Set the state of steps to RUNNING."""
    if keys:
        tx.run(_RUNNING, [{"stack_": stack_id, "key_": key} for key in keys])


def end(tx: Tx, stack_id: str, key: str) -> list[str]:
    """Delete a step that has ended; return the keys of the steps that now wait for nothing."""
    tx.run(_END, {"stack": stack_id, "key": key})
    return [row.key for row in tx.run(_RELEASE, {"stack": stack_id, "ended": key}) if row.waiting == 0]


def clear(tx: Tx, stack_id: str) -> None:
    """Delete the plan of the stack."""
    tx.run(_CLEAR, {"stack": stack_id})
    tx.run(_CLEAR_EDGES, {"stack": stack_id})
