"""What a stack was at a time, kept to go back to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from stoker.model.errors import Invalid, NotSupported
from stoker.model.stack import Snapshot, Source
from stoker.model.status import Action, Status
from stoker.stacks import moving, operations, phases
from stoker.stacks.closing import close
from stoker.stacks.engine import Engine
from stoker.stacks.operations import Options
from stoker.stacks.prepare import Identity, prepare_again
from stoker.stacks.transition import Transition
from stoker.store import snapshots, stacks
from stoker.store.tx import Tx

#: Heat keeps as many.
MOST = 32


def take(tx: Tx, engine: Engine, stack_id: str, name: str | None) -> Snapshot:
    """Raises ActionInProgress, NotSupported for a stack that is going, Invalid when there are too many."""
    stack = stacks.get(tx, stack_id, hold=True)
    phases.refuse_busy(stack)
    if stack.action is Action.DELETE:
        raise NotSupported(f"A snapshot of a stack in {stack.action}_{stack.status} is not supported.")
    if snapshots.count(tx, stack_id) >= MOST:
        raise Invalid(f"a stack may have {MOST} snapshots, and this one has them: delete some")
    source = stacks.source(tx, stack_id)
    transition = Transition(tx, engine, stack)
    phases.pass_through(transition, Action.SNAPSHOT)
    close(transition)
    made = Snapshot(
        id=str(uuid4()),
        stack_id=stack_id,
        name=name,
        status=Status.COMPLETE,
        reason=transition.stack.reason,
        data={**moving.export(tx, stack, secrets=False), "source": source},
        created_at=tx.now,
    )
    snapshots.add(tx, made)
    return made


def restore(tx: Tx, engine: Engine, stack_id: str, snapshot: Snapshot) -> None:
    """The stack is led back to what it was. Raises NotSupported where it cannot be."""
    if snapshot.status is not Status.COMPLETE:
        raise NotSupported(f"Snapshot {snapshot.id} is {snapshot.status}: only complete ones can be restored.")
    stack = stacks.get(tx, stack_id, hold=True)
    phases.refuse_busy(stack)
    source = Source(**_plain(snapshot.data["source"]))
    prepared = prepare_again(engine, source, Identity(stack.id, stack.name, stack.project_id), source.files)
    operations.update(tx, engine, stack_id, prepared, Options(), action=Action.RESTORE)


def _plain(said: Mapping[str, Any]) -> dict[str, Any]:
    return {name: said[name] for name in ("template", "files", "environment", "supplied")}
