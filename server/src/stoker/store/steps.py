"""
Queries for the current plan of a stack: the steps that have not started, and the dependencies of all steps.

The cost of each statement depends only on the dependencies of its own step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from stoker.model.stack import Step, StepState
from stoker.store import rows
from stoker.store import sql as sqls
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

_STEPS = Repository(Step, "steps", key=("stack_id", "key"))
_ADD_EDGES = sqls.insert("edges", "stack_id", "need", "key")
_READY = _STEPS.select(f"stack_id = :stack AND waiting = 0 AND state = '{StepState.WAITING}' LIMIT :limit")
_RELEASE = sql(
    "UPDATE steps SET waiting = waiting - 1 WHERE stack_id = :stack"
    " AND key IN (SELECT key FROM edges WHERE stack_id = :stack AND need = :ended) RETURNING "
    # most dependents of a large stack wait for more, and their definitions are not needed
    + _STEPS.columns_sql().replace("steps.definition", "CASE WHEN waiting = 0 THEN definition END")
)
_HAS_EDGE = sql("SELECT key FROM edges WHERE stack_id = :stack AND need = :need AND key = :step")
_HOLD = sql("UPDATE steps SET waiting = waiting + 1 WHERE stack_id = :stack AND key = :step")
_DELETE = sql("DELETE FROM steps WHERE stack_id = :stack AND key @in(keys)")
_DROP_EDGES = sqls.delete("edges", "stack_id", "need")
_CLEAR = [sqls.delete(table, "stack_id") for table in ("steps", "edges")]


def add_all(tx: Tx, new: Iterable[Step], needs: Iterable[tuple[str, str, str]]) -> None:
    """
    Insert steps and their dependencies. ``needs`` are (stack id, key of the required step, key of the dependent step).
    """
    _STEPS.add_all(tx, new)
    tx.run_many(_ADD_EDGES, [{"stack_id": stack, "need": need, "key": key} for stack, need, key in needs])


def get(tx: Tx, stack_id: str, key: str) -> Step | None:
    """Return a step that has not started, or None."""
    return _STEPS.find(tx, stack_id, key)


def ready(tx: Tx, stack_id: str, limit: int) -> list[Step]:
    """Return at most ``limit`` steps without unfinished requirements."""
    return _STEPS.all(tx, _READY, {"stack": stack_id, "limit": limit})


def add(tx: Tx, stack_id: str, key: str) -> Step:
    """Add a step that waits for nothing, and return it."""
    # a step of this key that has ended leaves its dependencies behind
    tx.execute_fast(_DROP_EDGES, {"stack_id": stack_id, "need": key})
    new = Step(stack_id=stack_id, key=key, waiting=0, state=StepState.WAITING)
    _STEPS.add(tx, new)
    return new


def hold(tx: Tx, stack_id: str, key: str, before: str) -> None:
    """Let the step ``before`` wait for the step ``key``, unless it does already."""
    if not tx.fetch_all(_HAS_EDGE, {"stack": stack_id, "need": key, "step": before}):
        tx.run_many(_ADD_EDGES, [{"stack_id": stack_id, "need": key, "key": before}])
        tx.execute_fast(_HOLD, {"stack": stack_id, "step": before})


def pause(tx: Tx, step: Step) -> Step:
    """Set the state of a step to PAUSED, and return the step."""
    paused = replace(step, state=StepState.PAUSED)
    _STEPS.save(tx, paused)
    return paused


def delete_all(tx: Tx, stack_id: str, keys: Sequence[str]) -> None:
    """Delete steps that have started or ended."""
    if keys:
        tx.execute_fast(_DELETE, {"stack": stack_id, "keys": rows.dump(keys)})


def release(tx: Tx, stack_id: str, ended: str) -> list[Step]:
    """Return the steps that waited only for the one that has ended."""
    released = _STEPS.all(tx, _RELEASE, {"stack": stack_id, "ended": ended})
    return [step for step in released if step.waiting == 0]


def clear(tx: Tx, stack_id: str) -> None:
    """Delete the plan of the stack."""
    for statement in _CLEAR:
        tx.execute_fast(statement, {"stack_id": stack_id})
