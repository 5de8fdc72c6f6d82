"""
Queries for the current plan of a stack: the steps that have not started, and the dependencies of all steps.

The cost of each statement depends only on the dependencies of its own step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from stoker.model.stack import Step, StepState
from stoker.store import rows
from stoker.store import sql as sqls
from stoker.store.query import execute, exists
from stoker.store.repository import Repository
from stoker.store.sql import sql
from stoker.store.tx import Tx

_STEPS = Repository(Step, "steps", key=("stack_id", "key"))
#: Return a step that has not started, or None: ``get(tx, stack_id, key)``.
get = _STEPS.find
_ADD_EDGES = sqls.insert("edges", "stack_id", "need", "key")
#: Return at most a number of steps of a stack without unfinished requirements.
ready: Callable[[Tx, str, int], list[Step]] = _STEPS.lister(
    f"stack_id = :stack AND waiting = 0 AND state = '{StepState.WAITING}' LIMIT :limit"
)
_RELEASE = sql(
    "UPDATE steps SET waiting = waiting - 1 WHERE stack_id = :stack"
    " AND key IN (SELECT key FROM edges WHERE stack_id = :stack AND need = :ended) RETURNING "
    # most dependents of a large stack wait for more, and their definitions are not needed
    + _STEPS.columns.replace("steps.definition", "CASE WHEN waiting = 0 THEN definition END")
)
_has_edge: Callable[[Tx, str, str, str], bool] = exists(
    "SELECT key FROM edges WHERE stack_id = :stack AND need = :need AND key = :step"
)
_hold: Callable[[Tx, str, str], None] = execute(
    "UPDATE steps SET waiting = waiting + 1 WHERE stack_id = :stack AND key = :step"
)
_delete_all: Callable[[Tx, str, Sequence[str]], None] = execute(
    "DELETE FROM steps WHERE stack_id = :stack AND key @in(keys)"
)
_drop_edges: Callable[[Tx, str, str], None] = execute("DELETE FROM edges WHERE stack_id = :stack AND need = :need")
_CLEAR = [execute(f"DELETE FROM {table} WHERE stack_id = :stack") for table in ("steps", "edges")]
_PENDING = sql("SELECT stack_id, key FROM steps WHERE stack_id @in(ids)")
_EDGES = sql("SELECT stack_id, need, key FROM edges WHERE stack_id @in(ids) ORDER BY stack_id, need, key")


def add_all(tx: Tx, new: Iterable[Step], needs: Iterable[tuple[str, str, str]]) -> None:
    """
    Insert steps and their dependencies. ``needs`` are (stack id, key of the required step, key of the dependent step).
    """
    _STEPS.add_all(tx, new)
    tx.run_many(_ADD_EDGES, [{"stack_id": stack, "need": need, "key": key} for stack, need, key in needs])


def add(tx: Tx, stack_id: str, key: str) -> Step:
    """Add a step that waits for nothing, and return it."""
    # a step of this key that has ended leaves its dependencies behind
    _drop_edges(tx, stack_id, key)
    new = Step(stack_id=stack_id, key=key, waiting=0, state=StepState.WAITING)
    _STEPS.add(tx, new)
    return new


def hold(tx: Tx, stack_id: str, key: str, before: str) -> None:
    """Let the step ``before`` wait for the step ``key``, unless it does already."""
    if not _has_edge(tx, stack_id, key, before):
        tx.run_many(_ADD_EDGES, [{"stack_id": stack_id, "need": key, "key": before}])
        _hold(tx, stack_id, before)


def pause(tx: Tx, step: Step) -> Step:
    """Set the state of a step to PAUSED, and return the step."""
    paused = replace(step, state=StepState.PAUSED)
    _STEPS.save(tx, paused)
    return paused


def delete_all(tx: Tx, stack_id: str, keys: Sequence[str]) -> None:
    """Delete steps that have started or ended."""
    if keys:
        _delete_all(tx, stack_id, keys)


def release(tx: Tx, stack_id: str, ended: str) -> list[Step]:
    """Return the steps that waited only for the one that has ended."""
    released = _STEPS.all(tx, _RELEASE, {"stack": stack_id, "ended": ended})
    return [step for step in released if step.waiting == 0]


def list_pending(tx: Tx, stack_ids: Sequence[str]) -> tuple[set[tuple[str, str]], Sequence[tuple[str, str, str]]]:
    """
    Return the steps of stacks that have not started, as (stack id, key), and all dependencies of the stacks' plans, as
    (stack id, key of the required step, key of the dependent step).
    """
    ids = {"ids": rows.dump(stack_ids)}
    return {(stack, key) for stack, key in tx.fetch_all(_PENDING, ids)}, tx.fetch_all(_EDGES, ids)


def clear(tx: Tx, stack_id: str) -> None:
    """Delete the plan of the stack."""
    for delete in _CLEAR:
        delete(tx, stack_id)
