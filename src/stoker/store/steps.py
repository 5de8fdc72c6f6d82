"""
Queries for the current plan of a stack: its steps and their dependencies.

The cost of each statement depends only on the dependencies of its own step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlalchemy as sa

from stoker.model.stack import Step, StepState
from stoker.store import statements
from stoker.store.repository import Repository
from stoker.store.schema import edges, steps
from stoker.store.tx import Tx

_STEPS = Repository(Step, steps, key=("stack_id", "key"))
_ADD_EDGES = sa.insert(edges)
_READY = (
    sa.select(steps.c.key)
    .where(steps.c.stack_id == sa.bindparam("stack"), steps.c.waiting == 0, steps.c.state == StepState.WAITING.value)
    .limit(sa.bindparam("limit"))
)
_SET_STATE = statements.update(steps, "state", key=("stack_id", "key"))
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
_CLEAR = [statements.delete(table, "stack_id") for table in (steps, edges)]


def add_all(tx: Tx, new: Iterable[Step], needs: Iterable[tuple[str, str, str]]) -> None:
    """
    Insert steps and their dependencies. ``needs`` are (stack id, key of the required step, key of the dependent step).
    """
    _STEPS.add_all(tx, new)
    tx.run_many(_ADD_EDGES, [{"stack_id": stack, "need": need, "key": key} for stack, need, key in needs])


def get(tx: Tx, stack_id: str, key: str) -> Step | None:
    """Return the step, or None."""
    return _STEPS.find(tx, stack_id, key)


def ready(tx: Tx, stack_id: str, limit: int) -> list[str]:
    """Return the keys of at most ``limit`` waiting steps without unfinished requirements."""
    return [row[0] for row in tx.fetch_all(_READY, {"stack": stack_id, "limit": limit})]


def set_running(tx: Tx, stack_id: str, keys: Sequence[str]) -> None:
    """Set the state of steps to RUNNING."""
    values = {"key_stack_id": stack_id, "state": StepState.RUNNING.value}
    tx.run_many(_SET_STATE, [{**values, "key_key": key} for key in keys])


def end(tx: Tx, stack_id: str, key: str) -> list[str]:
    """Delete a step that has ended; return the keys of the steps that now wait for nothing."""
    _STEPS.delete(tx, stack_id, key)
    result = tx.fetch_all(_RELEASE, {"stack": stack_id, "ended": key})
    return [dependent for dependent, waiting in result if waiting == 0]


def clear(tx: Tx, stack_id: str) -> None:
    """Delete the plan of the stack."""
    for statement in _CLEAR:
        tx.execute_fast(statement, {"stack_id": stack_id})
